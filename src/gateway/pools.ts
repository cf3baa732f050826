import { createHash } from 'node:crypto'
import pg from 'pg'
import type { Log } from '../ports.ts'
import type { SqlRequest } from './sql-request.ts'
import type { Target } from './target.ts'

/** Who connects, and to what. */
export type Login = Pick<SqlRequest, 'user' | 'password' | 'database' | 'applicationName' | 'startupOptions'>

/** The gateway's own connections for single HTTP queries. */
export interface Pools {
  /** Runs `action` on a connection of that login, which afterwards keeps nothing of its session. */
  use<T>(login: Login, signal: AbortSignal, action: (client: pg.ClientBase) => Promise<T>): Promise<T>
  /** How many connections are open. */
  size(): number
  close(): Promise<void>
}

/** As many as a small server gives one of several apps; further queries wait their turn. */
const MAX_PER_LOGIN = 20
const IDLE_MS = 10_000
const CONNECT_MS = 15_000

/** Makes the pools, one for each login that comes. */
export function createPools(target: Target, log: Log): Pools {
  const pools = new Map<string, pg.Pool>()

  function poolOf(login: Login): pg.Pool {
    const key = keyOf(login)
    const existing = pools.get(key)
    if (existing !== undefined) return existing
    const pool = new pg.Pool({
      ...clientConfig(target, login),
      max: MAX_PER_LOGIN,
      idleTimeoutMillis: IDLE_MS,
    })
    pool.on('error', (error) =>
      log.debug({ error: error.message }, 'An idle connection of the Neon gateway was lost.'),
    )
    pool.on('remove', () => dropIfEmpty(key, pool))
    pools.set(key, pool)
    return pool
  }

  function dropIfEmpty(key: string, pool: pg.Pool): void {
    if (pool.totalCount === 0 && pool.waitingCount === 0 && pools.get(key) === pool) pools.delete(key)
  }

  return {
    async use(login, signal, action) {
      const client = await poolOf(login).connect()
      const stopCancelling = cancelOnAbort(target, login, client, signal, log)
      try {
        return await action(client)
      } finally {
        // Not awaited: the answer is ready, and the pool waits for the release anyway.
        void stopCancelling().then(() => handBack(client))
      }
    },
    size: () => [...pools.values()].reduce((sum, pool) => sum + pool.totalCount, 0),
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.end()))
      pools.clear()
    },
  }
}

/**
 * With the password in the key, nobody rides on a connection that another has logged in. Only what logs in counts:
 * a whole request is handed in, and its statements must not make a pool of their own.
 */
function keyOf({ user, password, database, applicationName, startupOptions }: Login): string {
  const facts = [user, password, database, applicationName, startupOptions]
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex')
}

function clientConfig(target: Target, login: Login): pg.PoolConfig {
  return {
    host: target.host,
    port: target.port,
    user: login.user,
    // As a function, so that an empty one is not filled from PGPASSWORD of this process.
    password: () => login.password,
    database: login.database,
    connectionTimeoutMillis: CONNECT_MS,
    ssl: false,
    keepAlive: true,
    ...(login.applicationName !== undefined && { application_name: login.applicationName }),
    ...(login.startupOptions !== undefined && { options: login.startupOptions }),
  }
}

/**
 * Ends the session's state (settings, locks, temporary tables, LISTEN) before
 * the next one gets the connection. It fails, and the connection goes, when
 * the statement has left a transaction open.
 */
async function handBack(client: pg.PoolClient): Promise<void> {
  try {
    await client.query('discard all')
    client.release()
  } catch (error) {
    client.release(error as Error)
  }
}

/** Cancels what runs when the caller hangs up, as Neon does. The result waits for a cancel under way. */
function cancelOnAbort(
  target: Target,
  login: Login,
  client: pg.PoolClient,
  signal: AbortSignal,
  log: Log,
): () => Promise<void> {
  let cancelling: Promise<void> = Promise.resolve()
  const cancel = (): void => {
    cancelling = cancelBackend(target, login, (client as unknown as { processID: number }).processID).catch(
      (error: Error) =>
        log.debug({ error: error.message }, 'A query whose caller hung up could not be cancelled.'),
    )
  }
  if (signal.aborted) cancel()
  else signal.addEventListener('abort', cancel, { once: true })
  return () => {
    signal.removeEventListener('abort', cancel)
    return cancelling
  }
}

async function cancelBackend(target: Target, login: Login, pid: number): Promise<void> {
  const client = new pg.Client(clientConfig(target, login))
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('select pg_catalog.pg_cancel_backend($1)', [pid])
  } finally {
    await client.end()
  }
}
