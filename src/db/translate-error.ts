import type { ErrorCode } from '../errors/codes.ts'
import { describeError } from '../errors/describe-error.ts'
import { isMillraceError, MillraceError, type JsonSafe } from '../errors/millrace-error.ts'

/** The one text for a database of another environment (W7). */
export const foreignDatabase =
  'the database belongs to another environment: nothing is delivered, fired or claimed (see `millrace adopt`)'

/** SQLSTATEs (whole, or their two-character class) and what they mean to a caller. */
const byState: Record<string, { code: ErrorCode; message?: string }> = {
  // raised by our own functions, whose words are meant for the caller
  MR001: { code: 'ISOLATION_LEVEL' },
  MR002: { code: 'IDEMPOTENCY_CONFLICT' },
  MR003: { code: 'DATABASE_UNAVAILABLE' },
  MR004: { code: 'WRONG_ENVIRONMENT', message: foreignDatabase },
  '2D000': {
    code: 'CONFLICT',
    message: 'publish commits by itself and cannot run inside a transaction: pass the transaction as { tx }',
  },
  '22P02': { code: 'INVALID_JSON', message: 'a value is not valid JSON' },
  '22P05': { code: 'INVALID_INPUT', message: 'a text holds a character that Postgres cannot store' },
  '22021': { code: 'INVALID_INPUT', message: 'a text is not valid UTF-8, or holds a NUL' },
  '54001': { code: 'JSON_TOO_DEEP', message: 'a value is nested too deep for Postgres' },
  '42501': { code: 'PERMISSION_DENIED', message: 'the database role lacks a grant: see `millrace grants`' },
  '42P01': { code: 'NOT_MIGRATED', message: 'a table is missing: run `millrace migrate`' },
  '42883': { code: 'NOT_MIGRATED', message: 'a function is missing: run `millrace migrate`' },
  '3F000': { code: 'NOT_MIGRATED', message: 'the schema is missing: run `millrace migrate`' },
  '40001': { code: 'DATABASE_BUSY', message: 'the transaction conflicted with another' },
  '40P01': { code: 'DATABASE_BUSY', message: 'the transaction was the victim of a deadlock' },
  '55P03': { code: 'DATABASE_BUSY', message: 'a lock was not to be had in time' },
  '57014': { code: 'DATABASE_BUSY', message: 'the statement was cancelled' },
  '08': { code: 'DATABASE_UNAVAILABLE', message: 'the connection to the database failed' },
  '28': { code: 'DATABASE_UNAVAILABLE', message: 'the database refused the login' },
  '3D': { code: 'DATABASE_UNAVAILABLE', message: 'the database does not exist' },
  '53': { code: 'DATABASE_UNAVAILABLE', message: 'the database is out of resources' },
  '57': { code: 'DATABASE_UNAVAILABLE', message: 'the database is shutting down or starting up' },
}

/**
 * Turns whatever a driver threw into a MillraceError. The five-character SQLSTATE is looked for along
 * `.cause`, never by class: Drizzle wraps single queries and not batches. Drizzle's own message prints
 * all parameters, so it is dropped here, and only Postgres's words are kept.
 */
export function translateError(error: unknown): MillraceError {
  for (const cause of causes(error)) if (isMillraceError(cause)) return cause
  const fromPostgres = findPostgresError(error)
  if (fromPostgres === undefined) return connectionError(error)
  const known = byState[fromPostgres.code] ?? byState[fromPostgres.code.slice(0, 2)]
  const words = fromPostgres.message
  const own = known !== undefined && known.message === undefined
  const message = own ? words : `${known?.message ?? 'the database refused a statement'} (${words})`
  return new MillraceError(known?.code ?? 'DATABASE_ERROR', message, {
    details: own ? {} : { sqlState: fromPostgres.code, ...namesIn(fromPostgres) },
    cause: fromPostgres,
  })
}

interface PostgresError {
  code: string
  message: string
  table?: unknown
  constraint?: unknown
}

function* causes(error: unknown): Generator<Record<string, unknown>> {
  let current = error
  // eight is deeper than any driver nests, and ends a cycle
  for (let depth = 0; depth < 8 && typeof current === 'object' && current !== null; depth++) {
    yield current as Record<string, unknown>
    current = (current as { cause?: unknown }).cause
  }
}

function findPostgresError(error: unknown): PostgresError | undefined {
  for (const cause of causes(error)) {
    if (
      typeof cause.code === 'string' &&
      /^[0-9A-Z]{5}$/.test(cause.code) &&
      !/^E[A-Z]{4}$/.test(cause.code)
    ) {
      return cause as unknown as PostgresError
    }
  }
  return undefined
}

function namesIn(error: PostgresError): { [key: string]: JsonSafe } {
  const names: { [key: string]: JsonSafe } = {}
  if (typeof error.table === 'string') names.table = error.table
  if (typeof error.constraint === 'string') names.constraint = error.constraint
  return names
}

/** No SQLSTATE at all: the statement never got an answer. */
function connectionError(error: unknown): MillraceError {
  let innermost: unknown = error
  for (const cause of causes(error)) innermost = cause
  const words = describeError(innermost)
  const isPrivate = innermost === error && error instanceof Error && words.startsWith('Failed query')
  return new MillraceError(
    'DATABASE_UNAVAILABLE',
    `the database gave no answer${isPrivate || words === '' ? '' : `: ${words}`}`,
    { cause: innermost },
  )
}
