import type { IncomingMessage } from 'node:http'
import { parseUrl } from './parse-url.ts'

/** What a `POST /sql` asks for. */
export interface SqlRequest {
  user: string
  password: string
  database: string
  applicationName: string | undefined
  /** The `options` of the connection string, such as `-c statement_timeout=1s`. */
  startupOptions: string | undefined
  statements: Statement[]
  /** Whether the statements came as a batch: one transaction, and an answer with `results`. */
  batch: boolean
  /** The statement that opens the batch's transaction. */
  begin: string
  /** Rows as arrays (else as objects). */
  arrayMode: boolean
  /** Values as Postgres prints them (else numbers, booleans and JSON as such). */
  rawText: boolean
}

/** One statement with its parameters. */
export interface Statement {
  query: string
  params: unknown[]
}

/** The request cannot be understood; the message is meant for the caller. */
export class BadSqlRequest extends Error {
  override readonly name = 'BadSqlRequest'
}

/** Neon's limit on requests. */
const MAX_BODY_BYTES = 64 * 1024 * 1024

const ISOLATION_LEVELS = new Map([
  ['ReadUncommitted', 'READ UNCOMMITTED'],
  ['ReadCommitted', 'READ COMMITTED'],
  ['RepeatableRead', 'REPEATABLE READ'],
  ['Serializable', 'SERIALIZABLE'],
])

/**
 * Reads a request of Neon's HTTP query protocol.
 *
 * @throws BadSqlRequest
 */
export async function readSqlRequest(request: IncomingMessage): Promise<SqlRequest> {
  if (request.headers.authorization !== undefined) {
    throw new BadSqlRequest('This gateway takes no auth tokens: put the password into the connection string')
  }
  const connection = readConnectionString(header(request, 'neon-connection-string'))
  const body = await readJson(request)
  const batch = 'queries' in body
  return {
    ...connection,
    statements: batch ? readBatch(body.queries) : [readStatement(body, 'the body')],
    batch,
    begin: readBegin(request),
    arrayMode: readFlag(request, 'neon-array-mode') ?? false,
    rawText: readFlag(request, 'neon-raw-text-output') ?? false,
  }
}

type Connection = Pick<SqlRequest, 'user' | 'password' | 'database' | 'applicationName' | 'startupOptions'>

function readConnectionString(value: string | undefined): Connection {
  if (value === undefined) throw new BadSqlRequest('The header Neon-Connection-String is missing')
  const url = parseUrl(value)
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol)) {
    // Without the value: it holds a password.
    throw new BadSqlRequest('The header Neon-Connection-String is not a postgres:// URL')
  }
  const user = decode(url.username)
  if (user === '') throw new BadSqlRequest('The connection string names no user')
  return {
    user,
    password: decode(url.password),
    database: decode(url.pathname.slice(1)) || user,
    applicationName: url.searchParams.get('application_name') ?? undefined,
    startupOptions: url.searchParams.get('options') ?? undefined,
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new BadSqlRequest('The connection string has a malformed percent escape')
  }
}

async function readJson(request: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new BadSqlRequest(`The request body is over ${MAX_BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  const parsed = parseJson(Buffer.concat(chunks).toString('utf8'))
  if (typeof parsed !== 'object' || parsed === null) throw new BadSqlRequest('The body is not a JSON object')
  return parsed
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new BadSqlRequest('The body is not JSON')
  }
}

function readBatch(queries: unknown): Statement[] {
  if (!Array.isArray(queries)) throw new BadSqlRequest('"queries" is not an array')
  return queries.map((query, index) => readStatement(query, `queries[${index}]`))
}

function readStatement(value: unknown, where: string): Statement {
  const { query, params = [] } = (value ?? {}) as { query?: unknown; params?: unknown }
  if (typeof query !== 'string') throw new BadSqlRequest(`"query" is missing in ${where}, or not a string`)
  if (!Array.isArray(params)) throw new BadSqlRequest(`"params" in ${where} is not an array`)
  return { query, params }
}

function readBegin(request: IncomingMessage): string {
  const parts = ['BEGIN']
  const isolation = header(request, 'neon-batch-isolation-level')
  if (isolation !== undefined) {
    const level = ISOLATION_LEVELS.get(isolation)
    if (level === undefined)
      throw new BadSqlRequest(
        `Neon-Batch-Isolation-Level is none of ${[...ISOLATION_LEVELS.keys()].join(', ')}`,
      )
    parts.push(`ISOLATION LEVEL ${level}`)
  }
  const readOnly = readFlag(request, 'neon-batch-read-only')
  if (readOnly !== undefined) parts.push(readOnly ? 'READ ONLY' : 'READ WRITE')
  const deferrable = readFlag(request, 'neon-batch-deferrable')
  if (deferrable !== undefined) parts.push(deferrable ? 'DEFERRABLE' : 'NOT DEFERRABLE')
  return parts.join(' ')
}

function readFlag(request: IncomingMessage, name: string): boolean | undefined {
  const value = header(request, name)?.toLowerCase()
  if (value === undefined) return undefined
  if (value !== 'true' && value !== 'false')
    throw new BadSqlRequest(`The header ${name} is neither true nor false`)
  return value === 'true'
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}
