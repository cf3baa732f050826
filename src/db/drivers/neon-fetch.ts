import { drizzle } from 'drizzle-orm/pg-proxy'
import { MillraceError } from '../../errors/millrace-error.ts'
import { defaultSchema, defineTables } from '../../schema/tables.ts'
import type { Db, DrizzlePg } from '../port.ts'
import { assertDatabaseUrl } from './database-url.ts'
import { throughGateway, type GatewayAddress } from './gateway-address.ts'
import type { NeonHttpOptions } from './neon-http.ts'
import { sendBatch } from './neon-http-batch.ts'
import { storeClosed } from './store-closed.ts'

/**
 * A Neon database by HTTP, as {@link createNeonHttpDb} has it, with `fetch` alone: Neon's driver brings its
 * client for WebSockets along, which is a third of what a worker would upload and is never used by HTTP.
 * Both send the same requests, and a test holds them together.
 *
 * @throws INVALID_SETTING when the URL or the schema's name is malformed
 */
export function createNeonFetchDb(options: NeonHttpOptions): Db {
  const { url, schema = defaultSchema, environment = null, gateway } = options
  assertDatabaseUrl(url, 'DATABASE_URL')
  const connection = connectionOf(throughGateway(url, gateway), gateway)
  const state = { closed: false }
  const send = (body: object): Promise<unknown> => {
    if (state.closed) throw storeClosed()
    return ask(connection, body)
  }
  const query = async (text: string, values: unknown[]): Promise<Answer> =>
    (await send(statementOf(text, values))) as Answer
  return {
    driver: 'neon-fetch',
    capabilities: { interactiveTx: false, listen: false, sessionLocks: false },
    drizzle: drizzleOver(query),
    tables: defineTables(schema),
    schema,
    environment,
    transaction: () => refuse('TRANSACTION_UNSUPPORTED', 'has no interactive transactions'),
    batch: (work) =>
      sendBatch(
        {
          query: statementOf,
          transaction: async (queries) => ((await send({ queries })) as { results: Answer[] }).results,
        },
        (recorder) => drizzleOver(async (text, values) => (await recorder.query(text, values, {})) as Answer),
        work,
      ),
    connectDirect: () => refuse('LISTEN_UNSUPPORTED', 'has no sessions, which LISTEN and migrations need'),
    async close() {
      state.closed = true
    },
  }
}

async function refuse(code: 'TRANSACTION_UNSUPPORTED' | 'LISTEN_UNSUPPORTED', why: string): Promise<never> {
  throw new MillraceError(code, `neon-fetch ${why}: use neon-ws or node-postgres`)
}

interface Connection {
  endpoint: string
  headers: Record<string, string>
}

/** Neon's proxy finds the database by its connection string, and answers at the region's address. */
function connectionOf(url: string, gateway: GatewayAddress | undefined): Connection {
  const parsed = new URL(url)
  if (!parsed.searchParams.has('application_name')) parsed.searchParams.append('application_name', 'millrace')
  const endpoint =
    gateway === undefined
      ? `https://${parsed.hostname.replace(/^[^.]+\./, 'api.')}/sql`
      : `http://${gateway.host}:${gateway.port}/sql`
  const headers = {
    'Neon-Connection-String': `postgresql:${parsed.href.slice(parsed.protocol.length)}`,
    'Neon-Raw-Text-Output': 'true',
    'Neon-Array-Mode': 'true',
  }
  return { endpoint, headers }
}

interface Field {
  name: string
  dataTypeID: number
}

interface Answer {
  fields: Field[]
  /** Every value as Postgres prints it. */
  rows: (string | null)[][]
}

function drizzleOver(query: (text: string, values: unknown[]) => Promise<Answer>): DrizzlePg {
  return drizzle(async (text, values, method) => {
    const { fields, rows } = await query(text, values)
    return { rows: decode(fields, rows, method === 'execute') }
  })
}

function statementOf(query: string, values: unknown[]): { query: string; params: (string | null)[] } {
  return { query, params: values.map(asText) }
}

async function ask({ endpoint, headers }: Connection, body: object): Promise<unknown> {
  const response = await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(body) })
  if (response.ok) return response.json()
  if (response.status === 400) {
    const { message, ...fields } = (await response.json()) as { message: string }
    throw Object.assign(new Error(message), fields)
  }
  throw new Error(`the database's proxy answered with status ${response.status}: ${await response.text()}`)
}

/** Drizzle's columns and our own casts leave nothing else. */
function asText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'object') throw new TypeError('a parameter has no text form')
  return String(value)
}

/** As the other drivers decode raw rows, where it matters: what is not named stays text. */
const decoders: Record<number, (text: string) => unknown> = {
  16: (text) => text === 't',
  21: Number,
  23: Number,
  26: Number,
  700: Number,
  701: Number,
  114: (text) => JSON.parse(text) as unknown,
  3802: (text) => JSON.parse(text) as unknown,
}

function decode(fields: Field[], rows: Answer['rows'], asObjects: boolean): unknown[] {
  const decodeRow = (row: (string | null)[]): unknown[] =>
    row.map((text, column) => (text === null ? null : (decoders[fields[column]!.dataTypeID]?.(text) ?? text)))
  if (!asObjects) return rows.map(decodeRow)
  return rows.map((row) => Object.fromEntries(decodeRow(row).map((value, at) => [fields[at]!.name, value])))
}
