import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy that can lose connections the ways that networks do. */
export interface Proxy {
  /** The same URL, by way of the proxy. */
  url(databaseUrl: string): string
  /** Passes nothing on any more, in either direction, and says nothing: a half-open connection. */
  blackhole(on: boolean): void
  /** Closes the next `count` connections at once. */
  refuseNext(count: number): void
  readonly accepted: number
  readonly open: number
  close(): Promise<void>
}

export async function startProxy(target: { host: string; port: number }): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let dark = false
  let refusals = 0
  let accepted = 0
  const server = createServer((client) => {
    accepted += 1
    if (refusals > 0) {
      refusals -= 1
      return void client.destroy()
    }
    const upstream = connect(target)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk) => dark || to.write(chunk))
      from.on('end', () => dark || to.end())
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        if (!dark) to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url(databaseUrl) {
      const url = new URL(databaseUrl)
      url.hostname = '127.0.0.1'
      url.port = String(port)
      return url.href
    },
    blackhole: (on) => void (dark = on),
    refuseNext: (count) => void (refusals = count),
    get accepted() {
      return accepted
    },
    get open() {
      return sockets.size
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
