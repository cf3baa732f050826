import type { Db } from '../db/port.ts'
import { purgeLocks } from '../locks/purge-locks.ts'
import type { Ports } from '../ports.ts'
import { nextSweepInMs } from '../queues/next-sweep.ts'
import { sweepQueues } from '../queues/sweep-queues.ts'
import { tickSchedules } from '../schedules/tick-schedules.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { defaultPoll, type PollSettings } from './pace.ts'
import { recur, type TaskReport } from './recurring.ts'

/** What {@link startSchedules} takes. */
export interface SchedulesSetup {
  db: Db
  /** Not started here. */
  forwarder: Forwarder
  ports: Ports
  /** Where no wakes arrive. Default: from a second to a minute. */
  poll?: PollSettings
}

/** The schedules and the sweep of this process, running. */
export interface RunningSchedules {
  /** Ends both after what is at hand. */
  stop(): Promise<void>
}

/** A worker's claim does most of what a sweep would, so a sweep lets it: no two come closer together. */
const betweenSweepsMs = 60_000

/**
 * Fires schedules when they are due, and sweeps the queues, in any number of processes at once. Each loop
 * sleeps until the next due time or a wake; with nothing due, and where wakes arrive, it makes no statement.
 */
export function startSchedules({
  db,
  forwarder,
  ports,
  poll = defaultPoll,
}: SchedulesSetup): RunningSchedules {
  const stopping = new AbortController()
  const shared = { forwarder, ports, poll, signal: stopping.signal }
  const loops = Promise.all([
    recur({ ...shared, name: 'schedules', concerns: isTimer, run: () => tick(db, ports, stopping.signal) }),
    recur({ ...shared, name: 'sweep', concerns: isQueue, restMs: betweenSweepsMs, run: () => sweep(db) }),
  ])
  return {
    async stop() {
      stopping.abort()
      await loops
    },
  }
}

function isTimer(subject: string): boolean {
  return subject === 't'
}

function isQueue(subject: string): boolean {
  return subject.startsWith('q')
}

async function tick(db: Db, ports: Ports, signal: AbortSignal): Promise<TaskReport> {
  const { nextDueInMs, role } = await tickSchedules(db, ports, { signal })
  return { nextDueInMs, active: role !== 'idle' }
}

/** The locks that nobody wants any more go along. */
async function sweep(db: Db): Promise<TaskReport> {
  let swept = await sweepQueues(db)
  const active = swept.released + swept.died + swept.removed + swept.forgotten > 0
  while (swept.more) swept = await sweepQueues(db)
  await purgeLocks(db)
  return { nextDueInMs: await nextSweepInMs(db), active }
}
