import type { Db } from '../db/port.ts'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import { assertSharedName } from '../schema/names.ts'
import type { Lock } from './lock.ts'
import { sleep } from '../sleep.ts'
import { attemptLock } from './try-acquire.ts'

/** What waiting needs of the world. */
export type WaitPorts = Pick<Ports, 'clock' | 'random'>

/** Options of {@link acquireLock}. */
export interface AcquireOptions {
  /** How long the lock is held unless renewed: 100 to 86,400,000 ms. */
  ttlMs: number
  /** How long to wait while another holds it. Default 0: one attempt. `Infinity`: until the signal aborts. */
  waitMs?: number
  /** Ends the wait with ABORTED. */
  signal?: AbortSignal
}

/** The first wait, for locks that are held for an instant. */
const firstPollMs = 25
/** The longest wait: what a release may go unnoticed. */
const longestPollMs = 1000

/**
 * Takes a lock, waiting for it if another holds it, or returns null when `waitMs` have passed. It asks
 * again after 25 ms, doubling to 1 s, with jitter so that contenders do not march in step, and as soon as
 * the lock runs out. Not a queue: whoever asks first after the release gets it.
 *
 * @throws INVALID_NAME, INVALID_INPUT, ABORTED
 */
export async function acquireLock(
  db: Db,
  ports: WaitPorts,
  name: string,
  options: AcquireOptions,
): Promise<Lock | null> {
  const granted = await waitForLock(db, ports, name, options)
  return granted === null ? null : granted.lock
}

/** A lock, and the local time just before it was asked for: it lasts at least `ttlMs` from then. */
export interface GrantedLock {
  lock: Lock
  askedAt: number
}

/** As {@link acquireLock}, telling what local timers need to know. */
export async function waitForLock(
  db: Db,
  ports: WaitPorts,
  name: string,
  options: AcquireOptions,
): Promise<GrantedLock | null> {
  assertSharedName('lock', name)
  const deadline = ports.clock.now() + assertWait(options.waitMs ?? 0)
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, longestPollMs)) {
    assertNotAborted(options.signal)
    const askedAt = ports.clock.now()
    const attempt = await attemptLock(db, name, { ttlMs: options.ttlMs })
    if (attempt.acquired) return { lock: attempt.lock, askedAt }
    const leftMs = deadline - ports.clock.now()
    if (!(leftMs > 0)) return null
    const jittered = pollMs * (0.5 + ports.random() / 2)
    await sleep(ports.clock, Math.min(jittered, attempt.heldForMs + 1, leftMs), options.signal)
  }
}

function assertWait(waitMs: number): number {
  if (!(waitMs >= 0)) throw invalidInput('waitMs', 'must be 0 or more milliseconds')
  return waitMs
}

function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new MillraceError('ABORTED', 'the wait for the lock was aborted')
}
