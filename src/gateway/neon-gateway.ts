import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'
import { parseUrl } from './parse-url.ts'
import { createPools } from './pools.ts'
import { answerSql } from './sql-endpoint.ts'
import { readTarget } from './target.ts'
import { openTunnel } from './tunnel.ts'

/** How to open a gateway. */
export interface NeonGatewayOptions {
  /** The Postgres it leads to; only host and port are used. */
  connectionString: string
  /** The address to listen on. Default `127.0.0.1`. */
  host?: string
  /** The port to listen on. Default: a free one. */
  port?: number
  log: Log
}

/** A running gateway. */
export interface NeonGateway {
  host: string
  port: number
  /** How many connections to Postgres are open: tunnels, and pooled ones for single queries. */
  connections(): number
  /** Cuts every tunnel, cancels what runs, and ends. */
  close(): Promise<void>
}

/**
 * Lets `@neondatabase/serverless` talk to any local Postgres: single queries
 * and batches by `POST /sql`, sessions by a WebSocket at `/v2`.
 *
 * User, password and database are the client's, from its connection string.
 * Host and port never are: the gateway leads to its own target only. The
 * client sets `neonConfig.fetchEndpoint = 'http://host:port/sql'`,
 * `wsProxy = 'host:port/v2'`, `useSecureWebSocket = false` and
 * `pipelineConnect = false`.
 *
 * @throws INVALID_SETTING when the target asks for TLS or the address cannot be listened on
 */
export async function createNeonGateway(options: NeonGatewayOptions): Promise<NeonGateway> {
  const { host = '127.0.0.1', port = 0, log } = options
  const target = readTarget(options.connectionString)
  const pools = createPools(target, log)
  const sockets = new WebSocketServer({ noServer: true })
  const server = createServer((request, response) => {
    if (pathOf(request) === '/sql' && request.method === 'POST')
      return void answerSql(request, response, { pools, log })
    response
      .writeHead(404, { 'Content-Type': 'text/plain' })
      .end('This is a Neon gateway: POST /sql, or a WebSocket at /v2\n')
  })
  server.on('upgrade', (request, socket, head) => {
    const refusal = refuseUpgrade(request)
    if (refusal !== undefined) return refuse(socket, refusal)
    sockets.handleUpgrade(request, socket, head, (client) => openTunnel(client, target, log))
  })
  await listen(server, host, port)
  return {
    host,
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.clients.size + pools.size(),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const client of sockets.clients) client.terminate()
      server.closeAllConnections()
      await pools.close()
      await closed
    },
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0]!
}

function refuseUpgrade(request: IncomingMessage): string | undefined {
  if (pathOf(request) !== '/v2') return '404 Not Found'
  return fromForeignPage(request.headers.origin) ? '403 Forbidden' : undefined
}

/** A browser lets any web page open a WebSocket to this machine, and says only in Origin whose page it is. */
function fromForeignPage(origin: string | undefined): boolean {
  if (origin === undefined) return false
  const hostname = parseUrl(origin)?.hostname
  return hostname !== 'localhost' && hostname !== '127.0.0.1' && hostname !== '[::1]'
}

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => {})
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

function listen(server: ReturnType<typeof createServer>, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new MillraceError(
          'INVALID_SETTING',
          `The Neon gateway cannot listen on ${host}:${port}: ${cause.message}`,
          { cause },
        ),
      ),
    )
    server.listen(port, host, resolve)
  })
}
