import type { Executor } from '../db/port.ts'
import type { Ports, TimerHandle } from '../ports.ts'
import { renewLock } from './hold.ts'
import { lockLost, type Lock } from './lock.ts'

/** Keeps a lock until it is stopped. */
export interface LockKeeper {
  /** Aborts with LEASE_LOST when the lock is lost. */
  readonly lost: AbortSignal
  /** Ends the renewals; the lock itself stays until it is released or runs out. */
  stop(): void
}

/**
 * Renews a lock every third of its time. The local timer that gives it up is set from the moment *before*
 * each request was sent, while the database counts from later, so it fires first whatever the two clocks
 * say (Q6): a renewal that fails or hangs leaves two more tries, and then the lock counts as lost.
 */
export function keepLock(
  db: Executor,
  ports: Pick<Ports, 'clock' | 'log'>,
  lock: Lock,
  options: { ttlMs: number; askedAt: number },
): LockKeeper {
  const { clock, log } = ports
  const controller = new AbortController()
  let renewal: TimerHandle
  let end: TimerHandle
  let stopped = false

  const stop = (): void => {
    stopped = true
    clock.clearTimeout(renewal)
    clock.clearTimeout(end)
  }
  const lose = (): void => {
    if (stopped) return
    stop()
    controller.abort(lockLost(lock.name))
  }
  const heldFrom = (askedAt: number): void => {
    clock.clearTimeout(end)
    end = clock.setTimeout(lose, Math.max(0, askedAt + options.ttlMs - clock.now()))
  }
  const renew = async (): Promise<void> => {
    renewal = clock.setTimeout(() => void renew(), options.ttlMs / 3)
    const askedAt = clock.now()
    try {
      const until = await renewLock(db, lock, { ttlMs: options.ttlMs })
      if (stopped) return
      if (until === null) lose()
      else heldFrom(askedAt)
    } catch (error) {
      log.warn({ lock: lock.name, err: error }, 'A lock could not be renewed; trying again')
    }
  }

  end = clock.setTimeout(lose, Math.max(0, options.askedAt + options.ttlMs - clock.now()))
  renewal = clock.setTimeout(() => void renew(), options.ttlMs / 3)
  return { lost: controller.signal, stop }
}
