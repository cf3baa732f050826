import type { Db } from '../db/port.ts'
import { purgeLocks } from '../locks/purge-locks.ts'
import { sleep } from '../sleep.ts'
import type { Ports } from '../ports.ts'
import { nextSweepInMs } from '../queues/next-sweep.ts'
import { sweepQueues } from '../queues/sweep-queues.ts'
import { tickSchedules } from '../schedules/tick-schedules.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { createPacer } from '../wakes/poll-timer.ts'
import { createWakeRegistry } from '../wakes/wake-signals.ts'

/** What {@link startSchedules} takes. */
export interface SchedulesSetup {
  db: Db
  /** Not started here. */
  forwarder: Forwarder
  ports: Ports
}

/** The schedules and the sweep of this process, running. */
export interface RunningSchedules {
  /** Ends both after what is at hand. */
  stop(): Promise<void>
}

/** After an error the next try comes so much later. */
const errorPauseMs = 1_000
/** A worker's claim does most of what a sweep would, so a sweep lets it: no two come closer together. */
const betweenSweepsMs = 60_000

/**
 * Fires schedules when they are due, and sweeps the queues, in any number of processes at once. Each loop
 * sleeps until the next due time or a wake; with nothing due, and where wakes arrive, it makes no statement.
 */
export function startSchedules({ db, forwarder, ports }: SchedulesSetup): RunningSchedules {
  const stopping = new AbortController()
  const { signal } = stopping
  const loops = Promise.all([
    run('schedules', { forwarder, ports, signal, concerns: (subject) => subject === 't' }, async () => {
      const tick = await tickSchedules(db, ports, { signal })
      return tick.nextDueInMs
    }),
    run('sweep', { forwarder, ports, signal, restMs: betweenSweepsMs, concerns: isQueue }, () => sweep(db)),
  ])
  return {
    async stop() {
      stopping.abort()
      await loops
    },
  }
}

function isQueue(subject: string): boolean {
  return subject.startsWith('q')
}

/** Returns when the next is due; the locks that nobody wants any more go along. */
async function sweep(db: Db): Promise<number | null> {
  while ((await sweepQueues(db)).more);
  await purgeLocks(db)
  return nextSweepInMs(db)
}

interface Loop {
  forwarder: Forwarder
  ports: Ports
  signal: AbortSignal
  /** Which wakes are a reason to look again. */
  concerns: (subject: string) => boolean
  /** How long at least from one run to the next. Default: no time. */
  restMs?: number
}

/** Runs `work` now, whenever it said that something is due, and on wakes; a failure is logged and tried again. */
async function run(name: string, loop: Loop, work: () => Promise<number | null>): Promise<void> {
  const { forwarder, ports, signal, restMs = 0 } = loop
  const registry = createWakeRegistry(ports.clock)
  const wake = registry.subscribe('all', { signal })
  const off = forwarder.onWake((subject) => {
    if (subject === 'all' || loop.concerns(subject)) registry.raise('all')
  })
  const pacer = createPacer({ ports, modes: forwarder })
  while (!signal.aborted) {
    wake.take()
    const dueInMs = await orLog(name, loop, work)
    if (restMs > 0) await sleep(ports.clock, restMs, signal)
    const dueAt = dueInMs === null ? undefined : ports.clock.now() + Math.max(0, dueInMs - restMs)
    if ((await pacer.wait({ wake, dueAt, signal })) === 'aborted') break
  }
  off()
}

async function orLog(
  name: string,
  { ports }: Loop,
  work: () => Promise<number | null>,
): Promise<number | null> {
  try {
    return await work()
  } catch (error) {
    ports.log.warn({ task: name, err: error }, 'A recurring task failed; trying again')
    return errorPauseMs
  }
}
