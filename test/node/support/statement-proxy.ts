import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A door before a Postgres at which everything that goes in is counted. */
export interface StatementProxy {
  /** The same address, through this door. */
  through(url: string): string
  /** The text of every statement that came, in order; `…` for one that was prepared before. */
  statements: string[]
  /** Connections that ever came. */
  accepted(): number
  /** Connections that are open. */
  open(): number
  /** Whether a connection is being made, or an answer is still to come. */
  busy(): boolean
  /** Cuts all connections, and refuses new ones: a database that is suspended. */
  suspend(): void
  resume(): void
  close(): Promise<void>
}

export async function startStatementProxy(databaseUrl: string): Promise<StatementProxy> {
  const { hostname, port: targetPort } = new URL(databaseUrl)
  const statements: string[] = []
  const sockets = new Set<Socket>()
  /** How many answers each connection waits for; the first is that to its startup. */
  const awaited = new Map<Socket, number>()
  let accepted = 0
  let suspended = false
  const server = createServer((near) => {
    accepted += 1
    near.on('error', () => {})
    if (suspended) return void near.resetAndDestroy()
    const far = connect({ host: hostname, port: Number(targetPort) })
    sockets.add(near)
    awaited.set(near, 1)
    const count = (by: number): void => void awaited.set(near, awaited.get(near)! + by)
    near.on('close', () => {
      sockets.delete(near)
      awaited.delete(near)
      far.destroy()
    })
    far.on('error', () => near.destroy())
    far.on('close', () => near.destroy())
    let parsed: string | undefined
    near.on(
      'data',
      createReader('frontend', (type, body) => {
        if (type === 'Q') statements.push(body.toString('utf8').replace(/\0$/, ''))
        // the name of the statement, its text, the types of its parameters
        if (type === 'P') parsed = body.toString('utf8').split('\0')[1]
        if (type === 'E') statements.push(parsed ?? '…')
        if (type === 'Q' || type === 'S') count(1)
      }),
    )
    far.on(
      'data',
      createReader('backend', (type) => {
        if (type === 'Z') count(-1)
      }),
    )
    near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const cut = (): void => sockets.forEach((socket) => socket.resetAndDestroy())
  return {
    through(url) {
      const changed = new URL(url)
      changed.host = `127.0.0.1:${port}`
      return changed.href
    },
    statements,
    accepted: () => accepted,
    open: () => sockets.size,
    busy: () => Array.from(awaited.values()).some((count) => count > 0),
    suspend() {
      suspended = true
      cut()
    },
    resume: () => void (suspended = false),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      cut()
      await closed
    },
  }
}

/**
 * Calls `onMessage` with each message: a byte of type, a length and a body. Only the frontend's first, the startup
 * message, has no type.
 *
 * Source: PostgreSQL documentation, Frontend/Backend Protocol, Message Formats.
 */
function createReader(
  side: 'frontend' | 'backend',
  onMessage: (type: string, body: Buffer) => void,
): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  let typed = side === 'backend'
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    for (;;) {
      const head = typed ? 1 : 0
      if (rest.length < head + 4) return
      const end = head + rest.readInt32BE(head)
      if (rest.length < end) return
      if (typed) onMessage(String.fromCharCode(rest[0]!), rest.subarray(head + 4, end))
      typed = true
      rest = rest.subarray(end)
    }
  }
}
