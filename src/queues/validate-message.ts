import { invalidInput } from '../errors/millrace-error.ts'
import { storableJson } from '../json/storable-json.ts'
import { assertHeaders, assertLabel } from '../schema/labels.ts'
import type { Backoff, NewMessage } from './message.ts'

const day = 86_400_000

/** The bounds of the numbers of a message, and what they are by default. */
const numbers = {
  priority: { min: -32_768, max: 32_767, default: 0 },
  delayMs: { min: 0, max: 366 * day, default: 0 },
  maxAttempts: { min: 1, max: 1000, default: 10 },
  leaseMs: { min: 1, max: day, default: 30_000 },
  dedupeWindowMs: { min: 1, max: 30 * day, default: day },
} as const

const defaultBackoff = { baseMs: 1000, factor: 2, maxMs: 3_600_000 } as const
const maxBackoffMs = 7 * day

/** A message in the form that the database functions take. */
export interface ReadyMessage {
  dataText: string
  type: string | null
  key: string | null
  headers: string | null
  priority: number
  delayMs: number | null
  at: string | null
  maxAttempts: number
  leaseMs: number
  backoff: Required<Backoff>
  dedupeKey: string | null
  dedupeWindowMs: number
}

/**
 * Checks a message before anything is stored and fills in its defaults.
 *
 * @param at names the message in errors: '' for a single one, `[3].` for the fourth of many
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP; `details.field` names the field
 */
export function validateMessage(message: NewMessage, at = ''): ReadyMessage {
  if (typeof message !== 'object' || message === null)
    throw invalidInput(at.slice(0, -1) || 'message', 'must be an object')
  if (typeof message.dataText !== 'string') throw invalidInput(`${at}data`, 'must be JSON text')
  const dataText = storableJson(message.dataText, `${at}data`)
  if (message.headers !== undefined && message.headers !== null)
    assertHeaders(message.headers, `${at}headers`)
  if ((message.dedupeWindowMs ?? null) !== null && (message.dedupeKey ?? null) === null)
    throw invalidInput(`${at}dedupeWindowMs`, 'needs a dedupeKey')
  const number = (name: keyof typeof numbers): number => {
    const { min, max, default: byDefault } = numbers[name]
    const value = message[name]
    return value === undefined || value === null ? byDefault : wholeNumber(value, `${at}${name}`, min, max)
  }
  return {
    dataText,
    type: label(message.type, `${at}type`, 256),
    key: label(message.key, `${at}key`, 512),
    headers: message.headers ? JSON.stringify(message.headers) : null,
    priority: number('priority'),
    delayMs: message.at === undefined ? number('delayMs') || null : null,
    at: message.at === undefined ? null : timeOf(message, message.at, at),
    maxAttempts: number('maxAttempts'),
    leaseMs: number('leaseMs'),
    backoff: message.backoff ? validateBackoff(message.backoff, `${at}backoff`) : defaultBackoff,
    dedupeKey: label(message.dedupeKey, `${at}dedupeKey`, 256),
    dedupeWindowMs: number('dedupeWindowMs'),
  }
}

/**
 * Checks that a number is whole and within bounds.
 *
 * @throws INVALID_INPUT
 */
export function wholeNumber(value: unknown, field: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw invalidInput(field, `must be a whole number from ${min} to ${max}`)
  }
  return value
}

function label(value: string | null | undefined, field: string, maxLength: number): string | null {
  if (value === undefined || value === null) return null
  assertLabel(value, field, maxLength)
  return value
}

function timeOf(message: NewMessage, time: Date, at: string): string {
  if (message.delayMs !== undefined) throw invalidInput(`${at}at`, 'cannot stand beside delayMs')
  if (!(time instanceof Date) || Number.isNaN(time.getTime()))
    throw invalidInput(`${at}at`, 'must be a valid date')
  const year = time.getUTCFullYear()
  if (year < 1 || year > 9999) throw invalidInput(`${at}at`, 'must lie in the years 1 to 9999')
  return time.toISOString()
}

function validateBackoff(backoff: Backoff, field: string): Required<Backoff> {
  const {
    baseMs = defaultBackoff.baseMs,
    factor = defaultBackoff.factor,
    maxMs = defaultBackoff.maxMs,
  } = backoff
  wholeNumber(baseMs, `${field}.baseMs`, 0, maxBackoffMs)
  wholeNumber(maxMs, `${field}.maxMs`, 0, maxBackoffMs)
  if (!(factor >= 1 && factor <= 100)) throw invalidInput(`${field}.factor`, 'must be a number from 1 to 100')
  return { baseMs, factor, maxMs }
}
