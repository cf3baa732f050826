import { invalidInput } from '../errors/millrace-error.ts'

/**
 * A time in a request. RFC 3339 with a zone: what lacks one would mean another moment on another host.
 *
 * @throws INVALID_INPUT
 */
export function timeOf(field: string, text: string): Date {
  const time = isTime(text) ? new Date(text) : new Date(Number.NaN)
  const year = time.getUTCFullYear()
  // in UTC too it has to have four digits, and Postgres knows no year 0
  if (!(year >= 1 && year <= 9999)) throw invalidInput(field, 'must be a time such as 2026-01-15T12:00:00Z')
  return time
}

const pattern = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/

/** `Date` takes the 30th of February for the second of March. */
function isTime(text: string): boolean {
  const [year, month, day] = (pattern.exec(text) ?? []).slice(1).map(Number)
  if (year === undefined || month === undefined || day === undefined) return false
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}
