import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../ports.ts'
import type { Pools } from './pools.ts'
import { runStatements } from './run-statements.ts'
import { BadSqlRequest, readSqlRequest } from './sql-request.ts'

/** What Neon's driver copies from an answer onto its error, besides the message. */
const ERROR_FIELDS = [
  'severity',
  'code',
  'detail',
  'hint',
  'position',
  'internalPosition',
  'internalQuery',
  'where',
  'schema',
  'table',
  'column',
  'dataType',
  'constraint',
  'file',
  'line',
  'routine',
] as const

/** SQLSTATE "connection failure", for a target that cannot be reached or was lost. */
const CONNECTION_FAILURE = '08006'

/** Answers `POST /sql`: 200 with the result or `{results}`, 400 with Postgres's error fields. */
export async function answerSql(
  request: IncomingMessage,
  response: ServerResponse,
  context: { pools: Pools; log: Log },
): Promise<void> {
  const hangUp = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) hangUp.abort()
  })
  try {
    const wanted = await readSqlRequest(request)
    const results = await context.pools.use(wanted, hangUp.signal, (client) => runStatements(client, wanted))
    sendJson(response, 200, wanted.batch ? { results } : results[0]!)
  } catch (error) {
    context.log.debug({ error: (error as Error).message }, 'The Neon gateway answers with an error.')
    // What is still to come of an oversized body would be read as the next request.
    if (!request.complete) response.setHeader('Connection', 'close')
    sendJson(response, 400, describeError(error as Error & Record<string, unknown>))
  }
}

function describeError(error: Error & Record<string, unknown>): object {
  const message =
    error.message === '' ? String(error.code ?? 'The database cannot be reached') : error.message
  if (error instanceof BadSqlRequest) return { message }
  if (typeof error.severity !== 'string') return { message, code: CONNECTION_FAILURE, severity: 'FATAL' }
  return { message, ...Object.fromEntries(ERROR_FIELDS.map((field) => [field, error[field] ?? null])) }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
  })
  response.end(text)
}
