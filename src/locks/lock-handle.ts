import type { Db, TxOption } from '../db/port.ts'
import { assertSharedName } from '../schema/names.ts'
import { acquireLock, type AcquireOptions } from './acquire.ts'
import { releaseLock, renewLock, type RenewOptions } from './hold.ts'
import type { Lock } from './lock.ts'
import { readLock, type LockState } from './read-lock.ts'
import { tryAcquireLock, type TryAcquireOptions } from './try-acquire.ts'
import { withLock, type LockPorts, type WithLock } from './with-lock.ts'

/** A lock by its name; see the functions of the same names for what each guarantees and throws. */
export interface LockHandle {
  readonly name: string
  tryAcquire(options: TryAcquireOptions): Promise<Lock | null>
  acquire(options: AcquireOptions): Promise<Lock | null>
  renew(lock: Pick<Lock, 'token'>, options: RenewOptions): Promise<Date | null>
  release(lock: Pick<Lock, 'token'>, options?: TxOption): Promise<boolean>
  /** Runs `work` while holding the lock. */
  with<T>(
    options: AcquireOptions,
    work: (lock: Lock, signal: AbortSignal) => Promise<T>,
  ): Promise<WithLock<T>>
  /** How it stands, for people to look at; null: nobody has held it lately. */
  state(options?: TxOption): Promise<LockState | null>
}

/**
 * A handle on a lock; makes no statement.
 *
 * @throws INVALID_NAME
 */
export function createLockHandle(name: string, db: Db, ports: LockPorts): LockHandle {
  assertSharedName('lock', name)
  return {
    name,
    tryAcquire: (options) => tryAcquireLock(db, name, options),
    acquire: (options) => acquireLock(db, ports, name, options),
    renew: ({ token }, options) => renewLock(db, { name, token }, options),
    release: ({ token }, options) => releaseLock(db, { name, token }, options),
    with: (options, work) => withLock(db, ports, name, options, work),
    state: (options) => readLock(db, name, options),
  }
}
