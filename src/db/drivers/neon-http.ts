import { neon, types, type NeonQueryFunction } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { MillraceError } from '../../errors/millrace-error.ts'
import { defaultSchema, defineTables } from '../../schema/tables.ts'
import type { Db } from '../port.ts'
import { assertDatabaseUrl } from './database-url.ts'
import { throughGateway, type GatewayAddress } from './gateway-address.ts'
import { useGatewayForHttp } from './neon-gateway.ts'
import { sendBatch } from './neon-http-batch.ts'
import { storeClosed } from './store-closed.ts'

/** How to reach a Neon database by HTTP. */
export interface NeonHttpOptions {
  /** The connection string, `postgres://…`. */
  url: string
  /** The Postgres schema that holds Millrace. Default `millrace`. */
  schema?: string
  /** The environment this process is for (`MILLRACE_ENVIRONMENT`): see `millrace adopt`. Default none. */
  environment?: string | null
  /** A gateway to an ordinary Postgres, in place of Neon's proxy. Default: Neon. */
  gateway?: GatewayAddress
}

/**
 * A Neon database by HTTP: one request a statement, nothing kept open, so it can live as long as it
 * likes on any edge. No interactive transactions, no LISTEN.
 *
 * @throws INVALID_SETTING when the URL or the schema's name is malformed
 */
export function createNeonHttpDb(options: NeonHttpOptions): Db {
  const { url, schema = defaultSchema, environment = null, gateway } = options
  assertDatabaseUrl(url, 'DATABASE_URL')
  const tables = defineTables(schema)
  if (gateway !== undefined) useGatewayForHttp(gateway)
  const state = { closed: false }
  const client = guard(neon(throughGateway(url, gateway)), state)
  return {
    driver: 'neon-http',
    capabilities: { interactiveTx: false, listen: false, sessionLocks: false },
    drizzle: keepingTypeParsers(() => drizzle(client)),
    tables,
    schema,
    environment,
    async transaction() {
      throw new MillraceError(
        'TRANSACTION_UNSUPPORTED',
        'neon-http has no interactive transactions: use batch, or neon-ws or node-postgres',
      )
    },
    batch: (work) =>
      sendBatch(client as never, (recorder) => keepingTypeParsers(() => drizzle(recorder as never)), work),
    async connectDirect() {
      throw new MillraceError(
        'LISTEN_UNSUPPORTED',
        'neon-http has no sessions: use neon-ws or node-postgres for LISTEN and migrations',
      )
    },
    async close() {
      state.closed = true
    },
  }
}

type NeonClient = NeonQueryFunction<boolean, boolean>

/** Refuses calls after close, and has dates left as text for this client only. */
function guard(client: NeonClient, state: { closed: boolean }): NeonClient {
  function open(): NeonClient {
    if (state.closed) throw storeClosed()
    return client
  }
  return {
    query: (text: string, values?: unknown[], config?: object) =>
      open().query(text, values as never, { ...config, types: datesAsText as never }),
    transaction: (queries: never, config?: object) =>
      open().transaction(queries, { ...config, types: datesAsText } as never),
  } as unknown as NeonClient
}

/** The dates, times and intervals that Drizzle parses itself, alone and as arrays. */
const textIds = [1184, 1114, 1082, 1186, 1231, 1115, 1185, 1187, 1182]

const datesAsText = {
  getTypeParser: (id: number, format?: 'text' | 'binary') =>
    textIds.includes(id) ? (value: string) => value : types.getTypeParser(id, format as never),
}

/**
 * Drizzle's neon-http replaces parsers in Neon's table of the whole process, and whoever else uses the
 * driver there gets text for dates. They are put back, and given to our own client by `guard`.
 */
function keepingTypeParsers<T>(make: () => T): T {
  const before = textIds.map((id) => [id, types.getTypeParser(id)] as const)
  try {
    return make()
  } finally {
    for (const [id, parser] of before) types.setTypeParser(id, parser as never)
  }
}
