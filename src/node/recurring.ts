import type { Ports } from '../ports.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { createPace, type Pace, type PollSettings } from './pace.ts'

/** What one run of a recurring task found. */
export interface TaskReport {
  /** In how many milliseconds there will be something to do; null: when somebody says so. */
  nextDueInMs: number | null
  /** There was something to do. */
  active: boolean
}

/** A task of the process that is done again and again. */
export interface RecurringTask {
  /** For the log. */
  name: string
  forwarder: Pick<Forwarder, 'mode' | 'onMode' | 'onWake' | 'agenda' | 'unasked'>
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  poll: PollSettings
  signal: AbortSignal
  /** Which wakes are a reason to look again. */
  concerns: (subject: string) => boolean
  /** How long at least from one run to the next. Default: no time. */
  restMs?: number
  /** How long after the start the first run comes. Default: at once. */
  firstMs?: number
  run: () => Promise<TaskReport>
}

/** After an error the next try comes so much later, and twice as much each time it fails again. */
const errorPauseMs = 1_000

/**
 * Does a task at the start, whenever it said that something is due, and on wakes; a failure is logged and
 * tried again. Resolves when the signal has ended it. With nothing due, and where wakes arrive, it does nothing.
 */
export async function recur(task: RecurringTask): Promise<void> {
  const { forwarder, ports, restMs = 0, firstMs = 0 } = task
  const pace = createPace(task)
  let notBefore = ports.clock.now() + firstMs
  const off = forwarder.onWake((subject) => {
    // who has just looked would otherwise fetch the forwarder back from its next sleep, and that again, for ever
    const looked = subject === 'all' && forwarder.unasked && ports.clock.now() < notBefore
    if (!looked && (subject === 'all' || task.concerns(subject))) pace.poke()
  })
  let failures = 0
  let dueAt: number | undefined = notBefore
  while (await untilRun(pace, { dueAt, notBefore, clock: ports.clock })) {
    // before it looks too: who comes back for what is due is told `all` at once, and maybe again while it looks
    pace.settle()
    notBefore = ports.clock.now() + restMs
    const report = await orLog(task)
    failures = report === null ? failures + 1 : 0
    const inMs = report === null ? pauseAfter(failures, task.poll) : report.nextDueInMs
    notBefore = ports.clock.now() + restMs
    dueAt = inMs === null ? undefined : ports.clock.now() + inMs
    if (report?.active === true) pace.active()
  }
  off()
}

function pauseAfter(failures: number, { maxMs }: PollSettings): number {
  return Math.min(errorPauseMs * 2 ** (failures - 1), Math.max(maxMs, errorPauseMs))
}

/** Resolves with false at the end. However often it is woken, it does not run before its time. */
async function untilRun(
  pace: Pace,
  times: { dueAt: number | undefined; notBefore: number; clock: Ports['clock'] },
): Promise<boolean> {
  const { notBefore, clock } = times
  let dueAt = times.dueAt === undefined ? undefined : Math.max(times.dueAt, notBefore)
  for (;;) {
    if ((await pace.wait(dueAt)) === 'aborted') return false
    if (clock.now() >= notBefore) return true
    dueAt = notBefore
  }
}

async function orLog({ name, ports, signal, run }: RecurringTask): Promise<TaskReport | null> {
  try {
    return await run()
  } catch (error) {
    if (!signal.aborted) ports.log.warn({ task: name, err: error }, 'A recurring task failed; trying again')
    return null
  }
}
