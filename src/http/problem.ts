import { errorCodes } from '../errors/codes.ts'
import { isMillraceError, MillraceError, type JsonSafe } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'

/** How long a client should wait before it repeats a request that a busy or absent database failed. */
const retryAfterSeconds = 1

/**
 * An error as an `application/problem+json` answer: `type`, `title`, `status`, `detail`, the stable
 * `code`, and the facts of the error beside them (`field`).
 *
 * What went wrong on this side (5xx) is told by its code alone: the words may name hosts, roles and
 * rows, so they go to the log.
 *
 * Source: RFC 9457.
 */
export function problemResponse(error: MillraceError, headers: Record<string, string> = {}): Response {
  const { title } = errorCodes[error.code]
  const ours = error.status >= 500
  const problem: { [key: string]: JsonSafe } = {
    ...(ours ? publicDetails(error) : error.details),
    type: `/errors/${error.code}`,
    title,
    status: error.status,
    detail: ours ? title : error.message,
    code: error.code,
  }
  const retry: Record<string, string> = error.retryable ? { 'retry-after': String(retryAfterSeconds) } : {}
  return new Response(JSON.stringify(problem), {
    status: error.status,
    headers: { 'content-type': 'application/problem+json', ...retry, ...headers },
  })
}

/** The SQLSTATE is Postgres's public vocabulary; everything else about a failure of ours stays inside. */
function publicDetails(error: MillraceError): { [key: string]: JsonSafe } {
  const { sqlState } = error.details
  return sqlState === undefined ? {} : { sqlState }
}

/** Whatever was thrown, as a MillraceError; what is none becomes INTERNAL. */
export function asMillraceError(error: unknown): MillraceError {
  if (isMillraceError(error)) return error
  return new MillraceError('INTERNAL', 'an unexpected error', { cause: error })
}

/** Logs a failure of ours: what was asked for and what happened, never a query string, header or body. */
export function logFailure(log: Log, request: Request, error: MillraceError): void {
  const facts = {
    method: request.method,
    path: new URL(request.url).pathname,
    code: error.code,
    cause: describe(error.cause),
  }
  if (error.retryable) log.warn(facts, error.message)
  else log.error(facts, error.message)
}

/** Name, message and stack, and no other property: a database error's `detail` quotes the row. */
function describe(cause: unknown): object | string | undefined {
  if (cause === undefined) return undefined
  if (!(cause instanceof Error)) return typeof cause
  return { name: cause.name, message: cause.message, stack: cause.stack }
}
