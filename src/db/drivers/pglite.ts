import { PGlite } from '@electric-sql/pglite'
import { drizzle } from 'drizzle-orm/pglite'
import { defaultSchema, defineTables } from '../../schema/tables.ts'
import { batchInTransaction } from '../batch.ts'
import type { Db, DrizzlePg } from '../port.ts'
import { translateError } from '../translate-error.ts'
import { openPgliteSession } from './pglite-session.ts'
import { storeClosed } from './store-closed.ts'

/** How to make or take a PGlite. */
export interface PgliteOptions {
  /**
   * The folder of the data; absent: in memory. Two processes on one folder lose rows in silence, so the
   * caller locks it.
   */
  dataDir?: string
  /** A PGlite of the caller's, which stays open after `close`. */
  pglite?: PGlite
  /** The Postgres schema that holds Millrace. Default `millrace`. */
  schema?: string
  /** The environment this process is for (`MILLRACE_ENVIRONMENT`): see `millrace adopt`. Default none. */
  environment?: string | null
}

/**
 * Postgres inside the process, on one session for everyone: a transaction makes all other calls wait
 * until it ends, so inside one only its own executor may be used. One that is still open 5 seconds after
 * `close` is rolled back, and fails with STORE_CLOSED.
 *
 * @throws INVALID_SETTING when the schema's name is malformed
 */
export function createPgliteDb(options: PgliteOptions = {}): Db {
  const { schema = defaultSchema, environment = null } = options
  const tables = defineTables(schema)
  const pglite = options.pglite ?? new PGlite(options.dataDir)
  const state: PgliteState = { closing: undefined, sessions: new Set(), transactions: new Set() }
  const client = guard(pglite, state)
  const db = drizzle(client)
  const transaction: Db['transaction'] = (work) =>
    transactionOnPglite(db, (tx) => work({ drizzle: tx, tables, schema, environment }))
  return {
    driver: 'pglite',
    capabilities: { interactiveTx: true, listen: true, sessionLocks: true },
    drizzle: db,
    tables,
    schema,
    environment,
    transaction,
    batch: (work) => batchInTransaction(transaction, work),
    async connectDirect({ signal } = {}) {
      if (state.closing !== undefined) throw storeClosed()
      const session = await openPgliteSession(pglite, signal)
      state.sessions.add(session)
      session.onClose(() => state.sessions.delete(session))
      return session
    },
    close: () => (state.closing ??= close(pglite, state, options.pglite === undefined)),
  }
}

interface PgliteState {
  closing: Promise<void> | undefined
  sessions: Set<{ close(): Promise<void> }>
  /** Ends a transaction that is open, whatever its work is doing. */
  transactions: Set<(error: Error) => void>
}

/** Transactions in flight get so long to finish. */
const closeMs = 5_000

/**
 * Sessions are only views of the one session below, so they end with it. It waits for the transaction that is
 * open, and is never left running: whoever locked the folder gives it free after this.
 */
async function close(pglite: PGlite, state: PgliteState, owned: boolean): Promise<void> {
  const timer = setTimeout(() => {
    for (const end of state.transactions) end(storeClosed())
  }, closeMs)
  try {
    await Promise.all([...state.sessions].map((session) => session.close()))
    if (owned && !pglite.closed) await pglite.close()
  } finally {
    clearTimeout(timer)
  }
}

/** What `work` rejects with comes out as it is; failures of BEGIN and COMMIT are translated. */
async function transactionOnPglite<T>(
  db: ReturnType<typeof drizzle>,
  work: (tx: DrizzlePg) => Promise<T>,
): Promise<T> {
  let failure: { error: unknown } | undefined
  try {
    return await db.transaction(
      (tx) =>
        work(tx).catch((error: unknown) => {
          failure = { error }
          throw error
        }),
      { isolationLevel: 'read committed' },
    )
  } catch (error) {
    throw failure === undefined ? translateError(error) : failure.error
  }
}

/** The outcome of a transaction's work, or the end that `close` makes of it; PGlite rolls back then. */
async function endable<T>({ transactions }: PgliteState, work: Promise<T>): Promise<T> {
  let end: (error: Error) => void = () => {}
  const ended = new Promise<never>((_, reject) => (end = reject))
  transactions.add(end)
  try {
    return await Promise.race([work, ended])
  } finally {
    transactions.delete(end)
  }
}

/** The two calls that Drizzle makes, refused once closed. */
function guard(pglite: PGlite, state: PgliteState): PGlite {
  function open(): PGlite {
    if (state.closing !== undefined) throw storeClosed()
    return pglite
  }
  const guarded: Pick<PGlite, 'query' | 'transaction'> = {
    query: async (text, parameters, options) => open().query(text, parameters, options),
    transaction: async (work) =>
      open().transaction(async (tx) => {
        // it may have waited for another one until now
        open()
        return endable(state, work(tx))
      }),
  }
  return guarded as PGlite
}
