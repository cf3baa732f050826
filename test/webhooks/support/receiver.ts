import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A real HTTP server on the loopback, and what it saw. */
export interface Receiver {
  origin: string
  port: number
  requests: { url: string; headers: IncomingMessage['headers']; body: string }[]
  /** Connections accepted so far. */
  connections(): number
  /** Resolves once every connection made so far is closed. */
  allClosed(): Promise<void>
  close(): Promise<void>
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

/** Starts a receiver; the handler runs once the request's body is in. */
export async function startReceiver(handle: Handle): Promise<Receiver> {
  const requests: Receiver['requests'] = []
  const sockets: Socket[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    requests.push({ url: request.url ?? '', headers: request.headers, body })
    response.on('error', () => {})
    handle(request, response)
  }
  const server = createServer((request, response) => {
    Promise.resolve(listener(request, response)).catch(() => response.destroy())
  })
  server.on('connection', (socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => sockets.length,
    async allClosed() {
      await Promise.all(
        sockets.map((socket) => socket.closed || new Promise((done) => socket.on('close', done))),
      )
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
