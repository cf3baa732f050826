import { settledWithin } from './bounded.ts'
import { storeClosed } from './store-closed.ts'

/** What `pg`'s pooled clients and Neon's have in common. */
export interface PooledClient {
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

type ConnectCallback<Client> = (error: unknown, client?: Client, release?: unknown) => void

/** What `pg`'s Pool and Neon's have in common. */
export interface Pool<Client extends PooledClient> {
  connect(callback?: ConnectCallback<Client>): unknown
  end(): Promise<void>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect' | 'remove', listener: (client: Client) => void): unknown
}

/** A pool that can be closed in bounded time. */
export interface GuardedPool<Client> {
  /** @throws STORE_CLOSED once closed */
  acquire(): Promise<Client>
  readonly closed: boolean
  /** `close` has cut what did not end in time. */
  readonly cut: boolean
  close(): Promise<void>
}

/** Statements in flight get so long to finish, then their sockets are cut. */
const closeMs = 5000
/**
 * A statement outside a transaction gets no more: ours take far less, and on a connection that has fallen
 * silent it would wait for a quarter of an hour, and keep a place in the pool.
 */
const statementMs = 60_000

/**
 * Makes a pool survive what a pool must: lost connections never end the process, a call after `close`
 * (or one still waiting for a connection then) fails with STORE_CLOSED, `close` takes at most
 * 5 seconds, and a single statement 60. The pool's own `connect` is replaced, so that this holds for Drizzle's calls too.
 *
 * @param destroy cuts a client's socket without a farewell
 * @param answerMs how long a single statement may take
 */
export function guardPool<Client extends PooledClient>(
  pool: Pool<Client>,
  destroy: (client: Client) => void,
  answerMs: number = statementMs,
): GuardedPool<Client> {
  const connect = pool.connect.bind(pool) as () => Promise<Client>
  const waiting = new Set<(error: Error) => void>()
  const sessions = trackSessions(pool)
  let closing: Promise<void> | undefined
  let cut = false

  function acquire(): Promise<Client> {
    if (closing !== undefined) return Promise.reject(storeClosed())
    return new Promise((resolve, reject) => {
      waiting.add(reject)
      connect().then(
        (client) => (waiting.delete(reject) ? resolve(client) : client.release()),
        (error) => {
          waiting.delete(reject)
          reject(error)
        },
      )
    })
  }
  pool.connect = (callback) => {
    if (callback === undefined) return acquire()
    // only `query`, for a single statement, calls it so
    acquire().then((client) => {
      boundUse(client, answerMs, () => destroy(client))
      callback(undefined, client, client.release)
    }, callback)
    return undefined
  }

  async function close(): Promise<void> {
    for (const reject of waiting) reject(storeClosed())
    waiting.clear()
    await settledWithin(
      pool.end().then(() => sessions.gone()),
      closeMs,
    )
    cut = true
    for (const client of sessions.open) destroy(client)
  }
  return {
    acquire,
    get closed() {
      return closing !== undefined
    },
    get cut() {
      return cut
    },
    close: () => {
      if (closing === undefined) {
        // set before close runs, so that nothing is acquired meanwhile
        let start: () => void = () => {}
        closing = new Promise<void>((resolve) => (start = resolve)).then(close)
        start()
      }
      return closing
    },
  }
}

/** Ends a client that is not released in time; whoever waits for its query is told that the connection is gone. */
function boundUse(client: PooledClient, answerMs: number, destroy: () => void): void {
  const timer = setTimeout(destroy, answerMs)
  const release = client.release.bind(client)
  client.release = (destroyed) => {
    clearTimeout(timer)
    release(destroyed)
  }
}

/** `end` of a pool resolves before its sessions have ended; this tells when they have. */
function trackSessions<Client extends PooledClient>(pool: Pool<Client>) {
  const open = new Set<Client>()
  let whenGone: (() => void) | undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => {
    open.add(client)
    // while a client is checked out the pool does not listen, and an unheard error ends the process;
    // whoever waits for the client's query gets the error as its rejection
    client.on('error', ignore)
  })
  pool.on('remove', (client) => {
    open.delete(client)
    if (open.size === 0) whenGone?.()
  })
  return {
    open,
    gone: (): Promise<void> =>
      open.size === 0 ? Promise.resolve() : new Promise((resolve) => (whenGone = resolve)),
  }
}

function ignore(): void {}
