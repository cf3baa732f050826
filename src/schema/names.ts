import { MillraceError } from '../errors/millrace-error.ts'

/** Names that begin like this belong to Millrace itself (its operational stream is `millrace.webhooks`). */
const reservedPrefix = 'millrace.'

/** Room for any sensible name, and short enough to stay inside an index entry and a log line. */
const maxNameLength = 128

const sharedName = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/

// oxlint-disable-next-line no-control-regex -- control characters are what this refuses
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/

function refuse(kind: string, problem: string): never {
  throw new MillraceError('INVALID_NAME', `the ${kind} name ${problem}`, { details: { field: kind } })
}

/**
 * The rule for names that everyone in a database shares (streams, queues, topics, locks,
 * schedules): 1 to 128 characters of letters, digits, `.`, `_`, `:` and `-`, beginning with a
 * letter or digit, and not with the reserved prefix `millrace.`.
 *
 * @throws INVALID_NAME
 */
export function assertSharedName(kind: string, name: string): void {
  assertReadableName(kind, name)
  if (name.startsWith(reservedPrefix))
    refuse(kind, `must not begin with "${reservedPrefix}", which is reserved`)
}

/**
 * As {@link assertSharedName}, but lets the reserved prefix pass: what Millrace itself writes
 * (`millrace.webhooks`) may be read by anyone.
 *
 * @throws INVALID_NAME
 */
export function assertReadableName(kind: string, name: string): void {
  assertText(kind, name)
  if (!sharedName.test(name)) {
    refuse(kind, 'may hold letters, digits, ".", "_", ":" and "-", and begins with a letter or digit')
  }
}

/**
 * The rule for names that live inside a stream (consumers): 1 to 128 characters, no control
 * characters. Reserved prefixes are legal here, since nothing can clash.
 *
 * @throws INVALID_NAME
 */
export function assertLocalName(kind: string, name: string): void {
  assertText(kind, name)
  if (controlCharacter.test(name)) refuse(kind, 'must not contain control characters')
  if (!name.isWellFormed()) refuse(kind, 'must be well-formed Unicode')
}

function assertText(kind: string, name: string): void {
  if (typeof name !== 'string') refuse(kind, 'must be a string')
  if (name === '') refuse(kind, 'must not be empty')
  if (name.length > maxNameLength) refuse(kind, `is longer than ${maxNameLength} characters`)
}

/**
 * The rule for the Postgres schema that holds Millrace's tables: a lower-case identifier of 1 to
 * 48 characters, so that it never needs quoting and leaves room for suffixes (Postgres allows 63).
 *
 * @throws INVALID_SETTING
 */
export function assertSchemaName(schema: string): void {
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema) || schema.startsWith('pg_')) {
    throw new MillraceError(
      'INVALID_SETTING',
      `MILLRACE_SCHEMA "${schema}" must be 1 to 48 lower-case letters, digits and "_", not begin with a digit, and not with "pg_"`,
    )
  }
}
