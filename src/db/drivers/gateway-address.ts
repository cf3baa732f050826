/** Where a gateway in front of an ordinary Postgres listens, in place of Neon's own proxy. */
export interface GatewayAddress {
  host: string
  port: number
}

/** The connection string with the gateway's address in it: who the database is, the gateway knows. */
export function throughGateway(url: string, gateway: GatewayAddress | undefined): string {
  if (gateway === undefined) return url
  const changed = new URL(url)
  changed.hostname = gateway.host
  changed.port = String(gateway.port)
  return changed.href
}
