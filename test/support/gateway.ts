import { neonConfig } from '@neondatabase/serverless'
import { WebSocket } from 'ws'
import { createNeonGateway, type NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { silentLog } from '../../src/system-ports.ts'

/** Starts a gateway to the server of a test database. */
export function startGateway(databaseUrl: string): Promise<NeonGateway> {
  return createNeonGateway({ connectionString: databaseUrl, log: silentLog })
}

/**
 * Points the real Neon driver at a gateway. The settings hold for the whole process: one gateway at a time, and
 * what is returned undoes them, for the next test file.
 */
export function useGateway(gateway: NeonGateway): () => void {
  const { fetchEndpoint, wsProxy, useSecureWebSocket, pipelineConnect, webSocketConstructor } = neonConfig
  neonConfig.fetchEndpoint = `http://${gateway.host}:${gateway.port}/sql`
  neonConfig.wsProxy = `${gateway.host}:${gateway.port}/v2`
  neonConfig.useSecureWebSocket = false
  neonConfig.pipelineConnect = false
  neonConfig.webSocketConstructor = WebSocket
  return () =>
    void Object.assign(neonConfig, {
      fetchEndpoint,
      wsProxy,
      useSecureWebSocket,
      pipelineConnect,
      webSocketConstructor,
    })
}
