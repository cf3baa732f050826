import { invalidInput, MillraceError } from '../errors/millrace-error.ts'

/** A lock as held. */
export interface Lock {
  name: string
  /** A random UUID that proves that the lock is this holder's. Keep it to yourself. */
  token: string
  /**
   * Higher than that of every holder before. Hand it to whatever the lock protects, and let that refuse a
   * lower fence than it has seen: so a holder that slept through its end does no harm.
   */
  fence: number
  /** When it ends unless renewed, by the database's clock. */
  until: Date
}

/** Which lock, and the proof that it is yours: a {@link Lock} fits. */
export type HeldLock = Pick<Lock, 'name' | 'token'>

/** Less is over before a distant database has answered. */
export const minTtlMs = 100
/** A day: a dead holder blocks everyone for as long. */
export const maxTtlMs = 24 * 60 * 60 * 1000

/**
 * Checks how long a lock is to be held.
 *
 * @throws INVALID_INPUT
 */
export function assertTtl(ttlMs: number): void {
  if (!Number.isInteger(ttlMs) || ttlMs < minTtlMs || ttlMs > maxTtlMs) {
    throw invalidInput('ttlMs', `must be a whole number of milliseconds from ${minTtlMs} to ${maxTtlMs}`)
  }
}

/** The reason with which the signal of a lost lock aborts. */
export function lockLost(name: string): MillraceError {
  return new MillraceError('LEASE_LOST', `the lock "${name}" was lost`, { details: { lock: name } })
}
