import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import { assertPartOfBatch, type BatchResults, type BatchWork } from './batch.ts'
import type { Tables } from '../schema/tables.ts'

/** Any Drizzle Postgres database or transaction, whichever driver is below it. */
// oxlint-disable-next-line typescript/no-explicit-any -- the caller's own schema is none of our business
export type DrizzlePg = PgDatabase<PgQueryResultHKT, any, any>

/** What a connection can do; the contract suite skips by these, never by the driver's name. */
export interface Capabilities {
  /** Transactions in which the next statement depends on the answer of the last. Not over HTTP. */
  interactiveTx: boolean
  /** A dedicated session that can LISTEN. */
  listen: boolean
  /** Session-level advisory locks mean something. Not over HTTP, nor through a transaction-mode pooler. */
  sessionLocks: boolean
}

/** Where statements can be run: a database, or a transaction of it. */
export interface Executor {
  readonly drizzle: DrizzlePg
  readonly tables: Tables
  /** The Postgres schema that holds Millrace. */
  readonly schema: string
  /**
   * The environment that this process was started for; null: none. In a database of another one, no work
   * is handed out: see fence.ts.
   */
  readonly environment: string | null
}

/** What the rooms need of a database. One per process; made by one of the files in db/drivers. */
export interface Db extends Executor {
  /** For messages: `node-postgres`, `neon-http`, `neon-ws` or `pglite`. */
  readonly driver: string
  readonly capabilities: Capabilities
  /**
   * Runs `work` in a transaction: it commits when the promise resolves and rolls back when it rejects.
   *
   * @throws TRANSACTION_UNSUPPORTED without `interactiveTx`
   */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>
  /**
   * Commits writes together, all or none, in one round trip where the driver has no interactive transactions
   * (neon-http), else in a transaction. No write can depend on the answer of another, and the order in which
   * they run is not promised, but for queries of `tx` itself. What a write learns from its answer alone (there is
   * no such stream) rejects too; over neon-http the batch has committed by then, in a transaction it rolls back.
   *
   * @throws TRANSACTION_UNSUPPORTED for writes of several statements: trim, and put, resume and runNow of schedules;
   *   INVALID_INPUT for a call of ours without `{ tx }`, which would commit on its own
   */
  batch<Items extends readonly unknown[]>(work: BatchWork<Items>): Promise<BatchResults<Items>>
  /**
   * Opens a dedicated session outside any pool, for LISTEN and for migrations. On Neon it goes to the
   * direct (unpooled) host.
   *
   * @throws LISTEN_UNSUPPORTED without `listen`; DATABASE_UNAVAILABLE
   */
  connectDirect(options?: { signal?: AbortSignal }): Promise<DirectConnection>
  /** Closes the pool. Calls after it fail with STORE_CLOSED. */
  close(): Promise<void>
}

/** A dedicated session. Everything in and out is text. */
export interface DirectConnection {
  /** One statement with `$1` parameters; rows as the driver decodes them, so cast in the SQL. */
  query(text: string, parameters?: (string | null)[]): Promise<Record<string, unknown>[]>
  /** A script of several statements, without parameters. */
  execute(script: string): Promise<void>
  onNotification(listener: (channel: string, payload: string) => void): void
  /** Called once when the session is gone, however it ended. */
  onClose(listener: (error?: Error) => void): void
  /** Ends the session; resolves in bounded time even when the peer is gone. */
  close(): Promise<void>
}

/** The option by which every write (and `read`) joins a Drizzle transaction of the caller's. */
export interface TxOption {
  /** A Drizzle transaction on the same database, of whichever driver. */
  tx?: DrizzlePg
}

/**
 * The executor for a call: the caller's transaction if there is one, else the database.
 *
 * @throws INVALID_INPUT for a call without `tx` among the writes of a batch
 */
export function executorFor(db: Executor, options: TxOption | undefined): Executor {
  assertPartOfBatch(options)
  if (options?.tx === undefined) return db
  const { tables, schema, environment } = db
  return { drizzle: options.tx, tables, schema, environment }
}
