import { MillraceError } from '../errors/millrace-error.ts'

/**
 * An int8 of a raw row: text on most drivers, a number on PGlite.
 *
 * @throws DATABASE_UNAVAILABLE when the answer has none there: never 0 or NaN for what is missing
 */
export function toNumber(value: unknown): number {
  const number = Number(value ?? Number.NaN)
  const isBlank = number === 0 && typeof value === 'string' && value.trim() === ''
  if (isBlank || !Number.isSafeInteger(number)) throw incomplete('a whole number', value)
  return number
}

/** As {@link toNumber}, where null stays null. */
export function toNumberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : toNumber(value)
}

/**
 * An int8[] of a raw row: an array on most drivers, an array literal where a driver leaves it as text.
 *
 * @throws as {@link toNumber}; a missing array is not an empty one
 */
export function toNumbers(value: unknown): number[] {
  if (Array.isArray(value)) return value.map(toNumber)
  if (typeof value !== 'string' || !/^\{.*\}$/.test(value)) throw incomplete('a list of whole numbers', value)
  const text = value.slice(1, -1)
  return text === '' ? [] : text.split(',').map(toNumber)
}

/**
 * A pooler that hands a session on at a bad moment can garble an answer. Whether the statement took effect is
 * as unknown as after a lost connection, so it is the same to the caller.
 */
function incomplete(what: string, value: unknown): MillraceError {
  const got = value === null || value === undefined ? 'nothing' : `a ${typeof value} that is none`
  return new MillraceError(
    'DATABASE_UNAVAILABLE',
    `the database's answer is incomplete: ${what} is missing (there is ${got})`,
  )
}

/** A timestamptz of a raw row: a Date on some drivers, Postgres's text on others. */
export function toDate(value: unknown): Date {
  return value instanceof Date ? value : new Date(String(value).replace(/([+-]\d\d)$/, '$1:00'))
}

/** As {@link toDate}, where null stays null. */
export function toDateOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : toDate(value)
}
