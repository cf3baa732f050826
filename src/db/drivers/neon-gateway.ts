import { neonConfig } from '@neondatabase/serverless'
import type { NeonConfigGlobalAndClient } from '@neondatabase/serverless'
import type { GatewayAddress } from './gateway-address.ts'

/** Makes one client open its WebSocket to the gateway. */
export function useGatewayFor(config: NeonConfigGlobalAndClient, gateway: GatewayAddress): void {
  config.wsProxy = () => `${gateway.host}:${gateway.port}/v2`
  config.useSecureWebSocket = false
  // an ordinary Postgres asks for scram, or for nothing: the answer cannot be sent before the question
  config.pipelineConnect = false
}

const knownGateways = new Set<string>()

/**
 * Makes HTTP queries for the gateway's address go to the gateway. Neon's driver has one such setting
 * for the whole process, so it is extended: every other host keeps its endpoint.
 */
export function useGatewayForHttp(gateway: GatewayAddress): void {
  const address = `${gateway.host}:${gateway.port}`
  if (knownGateways.has(address)) return
  if (knownGateways.size === 0) extendFetchEndpoint()
  knownGateways.add(address)
}

function extendFetchEndpoint(): void {
  const before = neonConfig.fetchEndpoint
  neonConfig.fetchEndpoint = (host, port, options) => {
    if (knownGateways.has(`${host}:${port}`)) return `http://${host}:${port}/sql`
    return typeof before === 'function' ? before(host, port, options) : before
  }
}
