import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
import { waitForLock, type AcquireOptions } from './acquire.ts'
import { releaseLock } from './hold.ts'
import { keepLock } from './keep-lock.ts'
import type { Lock } from './lock.ts'

/** What {@link withLock} needs of the world. */
export type LockPorts = Pick<Ports, 'clock' | 'random' | 'log'>

/** What {@link withLock} returns. */
export type WithLock<T> = { acquired: true; value: T } | { acquired: false }

/**
 * Runs `work` while holding a lock, renewing it every third of `ttlMs`, and gives the lock back at the
 * end, however `work` ends. `acquired` is false when another held it for all of `waitMs`.
 *
 * When the lock is lost (the database could not be reached for `ttlMs`, or the process slept), the signal
 * that `work` got aborts no later than another can take the lock, as far as timers can promise that; the
 * fence protects the rest. Whatever `work` returns after that counts as LEASE_LOST.
 *
 * @throws INVALID_NAME, INVALID_INPUT, ABORTED, LEASE_LOST; whatever `work` throws
 */
export async function withLock<T>(
  db: Db,
  ports: LockPorts,
  name: string,
  options: AcquireOptions,
  work: (lock: Lock, signal: AbortSignal) => Promise<T>,
): Promise<WithLock<T>> {
  const granted = await waitForLock(db, ports, name, options)
  if (granted === null) return { acquired: false }
  const { lock } = granted
  const keeper = keepLock(db, ports, lock, { ttlMs: options.ttlMs, askedAt: granted.askedAt })
  const signal = options.signal ? AbortSignal.any([options.signal, keeper.lost]) : keeper.lost
  try {
    const value = await work(lock, signal)
    if (keeper.lost.aborted) throw keeper.lost.reason
    return { acquired: true, value }
  } finally {
    keeper.stop()
    await giveBack(db, ports, lock)
  }
}

/** A failure here is no failure of the work: the lock ends by itself. */
async function giveBack(db: Db, ports: LockPorts, lock: Lock): Promise<void> {
  try {
    await releaseLock(db, lock)
  } catch (error) {
    ports.log.warn({ lock: lock.name, err: error }, 'A lock could not be given back; it ends by itself')
  }
}
