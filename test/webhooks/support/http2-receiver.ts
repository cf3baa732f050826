import { createSecureServer, type SecureServerOptions, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** What came to a receiver of HTTP/2. */
export interface Http2Receiver {
  port: number
  url: string
  /** Paths of the requests that are read to their end, in order. */
  paths: string[]
  /** What ALPN chose, for each connection. */
  protocols: (string | false | null)[]
  /** Connections that are open. */
  open(): number
  close(): Promise<void>
}

/** Called when the request's body is in. `nth` counts the requests that came, from 1. */
export type HandleStream = (stream: ServerHttp2Stream, path: string, nth: number) => void

/** Starts a receiver on loopback that speaks HTTP/2, and HTTP/1.1 where `allowHTTP1` says so. */
export async function startHttp2Receiver(
  options: SecureServerOptions & { port?: number },
  handle: HandleStream = (stream) => {
    stream.respond({ ':status': 200 })
    stream.end('ok')
  },
): Promise<Http2Receiver> {
  const sockets = new Set<Socket>()
  const paths: string[] = []
  const protocols: Http2Receiver['protocols'] = []
  const server = createSecureServer({ allowHTTP1: false, ...options })
  server.on('session', (session) => session.on('error', () => {}))
  server.on('sessionError', () => {})
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (socket: TLSSocket) => {
    protocols.push(socket.alpnProtocol)
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('stream', (stream, headers) => {
    const path = headers[':path'] ?? ''
    stream.on('error', () => {})
    stream.resume()
    stream.on('end', () => {
      paths.push(path)
      if (!stream.destroyed) handle(stream, path, paths.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `https://127.0.0.1:${port}/`,
    paths,
    protocols,
    open: () => sockets.size,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
