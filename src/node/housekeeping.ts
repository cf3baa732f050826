import type { Db } from '../db/port.ts'
import { runRetention } from '../streams/retention.ts'
import { removeOldAttempts } from '../webhooks/attempt-retention.ts'
import { recur, type RecurringTask } from './recurring.ts'

/** What is too old may stay a minute longer: one look a minute costs nothing, one per publish would. */
const pauseMs = 60_000
/** Where no wakes arrive, nobody says that something was published. */
const unwokenMs = 600_000

/** What {@link startHousekeeping} takes. */
export interface HousekeepingSetup {
  db: Db
  ports: RecurringTask['ports']
  forwarder: RecurringTask['forwarder']
}

/** The housekeeping of this process, running. */
export interface Housekeeping {
  /** Waits for the statement that is on its way. */
  stop(): Promise<void>
}

/**
 * Removes in the background what streams need not keep, and old attempts. It looks when something was
 * published or configured, at most once a minute and first a minute after the start, and when something
 * becomes old enough. Idle, it makes no statement.
 */
export function startHousekeeping({ db, ports, forwarder }: HousekeepingSetup): Housekeeping {
  const stopping = new AbortController()
  const { signal } = stopping
  const running = recur({
    name: 'housekeeping',
    forwarder,
    ports,
    poll: { minMs: unwokenMs, maxMs: unwokenMs },
    signal,
    concerns: (subject) => subject.startsWith('s'),
    restMs: pauseMs,
    firstMs: pauseMs,
    async run() {
      const { nextDueInMs, deleted } = await runRetention(db, { clock: ports.clock, signal })
      const removed = await removeOldAttempts(db, { isOver: () => signal.aborted })
      return { nextDueInMs, active: deleted + removed > 0 }
    },
  })
  return {
    async stop() {
      stopping.abort()
      await running
    },
  }
}
