import { Cron } from 'croner'
import { describeError } from '../errors/describe-error.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import type { Timing } from './schedule.ts'

/** A {@link Timing} that was checked, with its defaults filled in. */
export type ValidTiming =
  | { cron: string; timeZone: string; everyMs: null }
  | { cron: null; timeZone: null; everyMs: number }

/** Each boundary is a transaction; what has to run more often is a loop, not a schedule. */
const minEveryMs = 100
const maxEveryMs = 365 * 24 * 60 * 60 * 1000
/** Sixty minutes by name fit twice. */
const maxCronLength = 256

/**
 * Checks a timing.
 *
 * @param now only to tell whether the cron can ever come again
 * @throws INVALID_INPUT; `details.field` is `cron`, `timeZone` or `everyMs`
 */
export function validateTiming(timing: Timing, now: Date): ValidTiming {
  const { cron = null, everyMs = null, timeZone = null } = timing
  if (cron === null && everyMs === null) throw invalidInput('cron', 'or everyMs must be given')
  if (cron !== null && everyMs !== null) throw invalidInput('everyMs', 'cannot stand beside cron')
  if (cron !== null) return validateCron(cron, timeZone ?? 'UTC', now)
  if (timeZone !== null) throw invalidInput('timeZone', 'goes with cron; everyMs has none')
  if (!Number.isInteger(everyMs) || everyMs! < minEveryMs || everyMs! > maxEveryMs) {
    throw invalidInput('everyMs', `must be a whole number from ${minEveryMs} to ${maxEveryMs}`)
  }
  return { cron: null, timeZone: null, everyMs: everyMs! }
}

function validateCron(cron: string, timeZone: string, now: Date): ValidTiming {
  const valid = { cron: assertFields(cron), timeZone: assertTimeZone(timeZone), everyMs: null }
  let next: Date | null
  try {
    next = nextBoundary(valid, now)
  } catch (error) {
    throw invalidInput('cron', `is not understood: ${describeError(error)}`)
  }
  if (next === null) throw invalidInput('cron', 'names a date that never comes')
  return valid
}

/** The library would also take a single date, and seven fields. */
function assertFields(cron: unknown): string {
  if (typeof cron !== 'string') throw invalidInput('cron', 'must be a string')
  if (cron.length > maxCronLength) throw invalidInput('cron', `is longer than ${maxCronLength} characters`)
  const fields = cron.trim().split(/\s+/)
  const isNickname = fields.length === 1 && /^@[a-z]+$/i.test(cron.trim())
  if (fields.length !== 5 && fields.length !== 6 && !isNickname) {
    throw invalidInput('cron', 'must have five fields, or six with the seconds first')
  }
  return fields.join(' ')
}

/** Only names: some runtimes also take offsets such as +02:00, and others do not. */
function assertTimeZone(timeZone: unknown): string {
  if (typeof timeZone !== 'string') throw invalidInput('timeZone', 'must be a string')
  try {
    if (!/^[A-Za-z]/.test(timeZone)) throw new RangeError()
    Intl.DateTimeFormat('en', { timeZone })
  } catch {
    throw invalidInput('timeZone', 'is not an IANA time zone such as Europe/Berlin')
  }
  return timeZone
}

/** The first boundary after a moment; null when none comes any more. */
export function nextBoundary(timing: ValidTiming, after: Date): Date | null {
  if (timing.cron !== null) return parse(timing).nextRun(after)
  return new Date((Math.floor(after.getTime() / timing.everyMs) + 1) * timing.everyMs)
}

/** The newest boundaries up to a moment (inclusive) and not before another, in order, at most `limit`. */
export function newestBoundaries(timing: ValidTiming, from: Date, upTo: Date, limit: number): Date[] {
  const newest = timing.cron === null ? multiples(timing.everyMs, upTo, limit) : runs(timing, upTo, limit)
  return newest.filter((boundary) => boundary >= from)
}

function multiples(everyMs: number, upTo: Date, limit: number): Date[] {
  const last = Math.floor(upTo.getTime() / everyMs)
  return Array.from({ length: limit }, (_, index) => new Date((last - limit + 1 + index) * everyMs))
}

function runs(timing: ValidTiming & { cron: string }, upTo: Date, limit: number): Date[] {
  // The library leaves out the reference itself and counts in whole seconds: ask from the next second.
  const reference = new Date(Math.floor(upTo.getTime() / 1000) * 1000 + 1000)
  return parse(timing).previousRuns(limit, reference).toReversed()
}

/**
 * `no-wildcard`: a cron without wildcard and step in its time of day is meant as times of day, also when
 * it lists several, so that none is lost in spring and none comes twice in autumn.
 */
function parse(timing: ValidTiming & { cron: string }): Cron {
  return new Cron(timing.cron, {
    paused: true,
    timezone: timing.timeZone,
    mode: '5-or-6-parts',
    fixedTimeRule: 'no-wildcard',
  })
}
