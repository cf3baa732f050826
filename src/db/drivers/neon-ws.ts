import { Client, Pool, type PoolClient } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-serverless'
import { defaultSchema, defineTables } from '../../schema/tables.ts'
import { batchInTransaction } from '../batch.ts'
import type { Db, DirectConnection } from '../port.ts'
import { assertDatabaseUrl } from './database-url.ts'
import { throughGateway, type GatewayAddress } from './gateway-address.ts'
import { useGatewayFor } from './neon-gateway.ts'
import { directNeonUrl } from './neon-url.ts'
import { guardPool } from './pool.ts'
import { transactionOn } from './pool-transaction.ts'
import { openSession } from './session.ts'
import { storeClosed } from './store-closed.ts'
import { watchWebSocket, type PingableSocket } from './watch-web-socket.ts'

/** How to reach a Neon database by WebSocket. */
export interface NeonWsOptions {
  /** The connection string, `postgres://…`; it may be the pooled one. */
  url: string
  /** The unpooled connection string, for LISTEN and migrations. Default: derived from `url`. */
  directUrl?: string
  /** The Postgres schema that holds Millrace. Default `millrace`. */
  schema?: string
  /** The environment this process is for (`MILLRACE_ENVIRONMENT`): see `millrace adopt`. Default none. */
  environment?: string | null
  /** The most connections in the pool. Default 10, minimum 1. */
  maxConnections?: number
  /** What `pg_stat_activity` shows, unless the URL says otherwise. Default `millrace`. */
  applicationName?: string
  /** A gateway to an ordinary Postgres, in place of Neon's proxy. Default: Neon. */
  gateway?: GatewayAddress
  /**
   * The WebSocket class. Default: the global one, which cannot ping, so that a half-open LISTEN session
   * is noticed by a SQL heartbeat only. On Node use db/drivers/neon-ws-node.ts, which brings `ws`.
   */
  webSocket?: unknown
}

const connectMs = 10_000

/**
 * A Neon database by WebSocket, with interactive transactions and LISTEN. Nothing is connected before
 * the first call.
 *
 * On Cloudflare Workers a socket belongs to the request that opened it, and a pool that outlives its
 * request hangs the next one. Make one per request there, and close it at the end:
 *
 * ```ts
 * const db = createNeonWsDb({ url: env.DATABASE_URL, maxConnections: 1 })
 * try { … } finally { ctx.waitUntil(db.close()) }
 * ```
 *
 * Where no transaction is needed, db/drivers/neon-http.ts is the better choice at the edge.
 *
 * @throws INVALID_SETTING when a URL or the schema's name is malformed
 */
export function createNeonWsDb(options: NeonWsOptions): Db {
  const { url, schema = defaultSchema, environment = null, maxConnections = 10 } = options
  assertDatabaseUrl(url, 'DATABASE_URL')
  const directUrl = options.directUrl ?? directNeonUrl(url)
  assertDatabaseUrl(directUrl, 'DATABASE_URL_UNPOOLED')
  const tables = defineTables(schema)
  const ConfiguredClient = clientClass(options)
  const config = { ...settings(options), connectionString: throughGateway(url, options.gateway) }
  const pool = new Pool({ ...config, max: maxConnections })
  ;(pool as unknown as { Client: typeof Client }).Client = ConfiguredClient
  const guarded = guardPool<PoolClient>(pool as never, (client) => cut(client as unknown as Client))
  const transaction: Db['transaction'] = (work) =>
    transactionOn(guarded, drizzle as never, (tx) => work({ drizzle: tx, tables, schema, environment }))
  return {
    driver: 'neon-ws',
    capabilities: { interactiveTx: true, listen: true, sessionLocks: true },
    drizzle: drizzle(pool),
    tables,
    schema,
    environment,
    transaction,
    batch: (work) => batchInTransaction(transaction, work),
    async connectDirect({ signal } = {}): Promise<DirectConnection> {
      if (guarded.closed) throw storeClosed()
      const connectionString = throughGateway(directUrl, options.gateway)
      const client = new ConfiguredClient({ ...settings(options), connectionString })
      const watch = (): (() => void) => watchWebSocket(socketOf(client), () => cut(client))
      return openSession({ client, destroy: () => cut(client), signal, watch })
    },
    close: guarded.close,
  }
}

function settings(options: NeonWsOptions) {
  return {
    application_name: options.applicationName ?? 'millrace',
    connectionTimeoutMillis: connectMs,
  }
}

/** Neon's settings are per client where they can be, so that others in the process keep theirs. */
function clientClass(options: NeonWsOptions): typeof Client {
  const { gateway, webSocket } = options
  return class extends Client {
    constructor(config?: ConstructorParameters<typeof Client>[0]) {
      super(config ?? {})
      if (webSocket !== undefined) this.neonConfig.webSocketConstructor = webSocket as never
      if (gateway !== undefined) useGatewayFor(this.neonConfig, gateway)
    }
  }
}

interface NeonSocket {
  ws: PingableSocket | null
  destroy(): void
}

function streamOf(client: Client): NeonSocket {
  return (client as unknown as { connection: { stream: NeonSocket } }).connection.stream
}

function socketOf(client: Client): PingableSocket | null {
  return streamOf(client).ws
}

/** A WebSocket's close waits for the peer's answer; `terminate`, where there is one, does not. */
function cut(client: Client): void {
  const stream = streamOf(client)
  if (stream.ws?.terminate !== undefined) stream.ws.terminate()
  else stream.destroy()
}
