/** The longest delay that a receiver may ask for: one day, in seconds. */
export const maxRetryAfterSeconds = 86_400

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

const time = String.raw`(?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2})`
const dayName = '(?:mon|tue|wed|thu|fri|sat|sun)'
const longDayName = '(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)'

/** The three forms of an HTTP date; today's, and two obsolete ones that must still be read. */
const dateForms = [
  String.raw`${dayName}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) ${time} gmt`,
  String.raw`${longDayName}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) ${time} gmt`,
  String.raw`${dayName} (?<month>[a-z]{3}) (?<day>[ \d]\d) ${time} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`, 'i'))

/**
 * The delay that a `Retry-After` header asks for, in whole seconds, rounded up, at most
 * a day; 0 for a date that has passed. Null when the header is missing or not usable.
 * Source: RFC 9110, sections 10.2.3 and 5.6.7.
 */
export function parseRetryAfter(value: string | null, now: Date): number | null {
  const text = value?.replace(/^[ \t]+|[ \t]+$/g, '') ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text), maxRetryAfterSeconds)
  const dateMs = parseHttpDate(text, now)
  if (dateMs === null) return null
  const seconds = Math.ceil((dateMs - now.getTime()) / 1000)
  return Math.min(Math.max(seconds, 0), maxRetryAfterSeconds)
}

/** Not `Date.parse`: it also takes ISO dates, and much that only one engine understands. */
function parseHttpDate(text: string, now: Date): number | null {
  const fields = dateForms.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined)
  if (fields === undefined) return null
  const month = months.indexOf(String(fields.month).toLowerCase())
  const day = Number(fields.day)
  const [hour, minute, second] = [Number(fields.hour), Number(fields.minute), Number(fields.second)]
  // 60 is a leap second
  if (month === -1 || hour > 23 || minute > 59 || second > 60) return null
  const year = fullYear(String(fields.year), now)
  const midnight = new Date(Date.UTC(year, month, day))
  const exists = midnight.getUTCMonth() === month && midnight.getUTCDate() === day
  return exists ? midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 : null
}

/** A two-digit year that would lie over 50 years ahead means the century before. */
function fullYear(digits: string, now: Date): number {
  if (digits.length === 4) return Number(digits)
  const thisYear = now.getUTCFullYear()
  const year = thisYear - (thisYear % 100) + Number(digits)
  return year > thisYear + 50 ? year - 100 : year
}
