import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { defaultSchema, defineTables } from '../../schema/tables.ts'
import { batchInTransaction } from '../batch.ts'
import type { Db, DirectConnection } from '../port.ts'
import { assertDatabaseUrl } from './database-url.ts'
import { directNeonUrl } from './neon-url.ts'
import { guardPool } from './pool.ts'
import { transactionOn } from './pool-transaction.ts'
import { prepareFixed } from './prepare-fixed.ts'
import { openSession } from './session.ts'
import { storeClosed } from './store-closed.ts'

/** How to reach a Postgres by `pg`. */
export interface NodePostgresOptions {
  /** The connection string, `postgres://…`; it may be that of a transaction-mode pooler. */
  url: string
  /**
   * The connection string of the server itself, for LISTEN and for migrations. Default: `url`; for a
   * pooled host of Neon its direct one.
   */
  directUrl?: string
  /** The Postgres schema that holds Millrace. Default `millrace`. */
  schema?: string
  /** The environment this process is for (`MILLRACE_ENVIRONMENT`): see `millrace adopt`. Default none. */
  environment?: string | null
  /** The most connections in the pool. Default 10, minimum 1. */
  maxConnections?: number
  /** What `pg_stat_activity` shows, unless the URL says otherwise. Default `millrace`. */
  applicationName?: string
}

/** A database that does not even answer the knock counts as unreachable after so long. */
const connectMs = 10_000
/**
 * After so much silence the kernel probes the peer. Node (libuv) sets ten probes a second apart, so a
 * half-open socket is noticed after 20 s. Only an idle one: while sent bytes are unacknowledged the
 * kernel retransmits instead of probing, and Node cannot set TCP_USER_TIMEOUT. Whoever writes on a
 * session that must notice therefore bounds its own statements.
 */
const keepAliveMs = 10_000

/**
 * A Postgres over TCP, for Node. Nothing is connected before the first call.
 *
 * @throws INVALID_SETTING when a URL or the schema's name is malformed
 */
export function createNodePostgresDb(options: NodePostgresOptions): Db {
  const {
    url,
    schema = defaultSchema,
    environment = null,
    maxConnections = 10,
    applicationName = 'millrace',
  } = options
  assertDatabaseUrl(url, 'DATABASE_URL')
  const directUrl = options.directUrl ?? directNeonUrl(url)
  assertDatabaseUrl(directUrl, 'DATABASE_URL_UNPOOLED')
  const tables = defineTables(schema)
  const shared = {
    application_name: applicationName,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
  }
  const pool = new pg.Pool({ ...shared, connectionString: url, max: maxConnections })
  const guarded = guardPool<pg.PoolClient>(pool as never, cut)
  pool.on('connect', prepareFixed)
  const transaction: Db['transaction'] = (work) =>
    transactionOn(guarded, drizzle as never, (tx) => work({ drizzle: tx, tables, schema, environment }))
  return {
    driver: 'node-postgres',
    capabilities: { interactiveTx: true, listen: true, sessionLocks: true },
    drizzle: drizzle(pool),
    tables,
    schema,
    environment,
    transaction,
    batch: (work) => batchInTransaction(transaction, work),
    async connectDirect({ signal } = {}): Promise<DirectConnection> {
      if (guarded.closed) throw storeClosed()
      const client = new pg.Client({ ...shared, connectionString: directUrl })
      return openSession({ client, destroy: () => cut(client), signal })
    },
    close: guarded.close,
  }
}

function cut(client: pg.ClientBase): void {
  ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
}
