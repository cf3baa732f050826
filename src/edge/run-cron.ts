import type { Db } from '../db/port.ts'
import { purgeLocks } from '../locks/purge-locks.ts'
import type { Ports } from '../ports.ts'
import { sweepQueues } from '../queues/sweep-queues.ts'
import { tickSchedules, type Tick } from '../schedules/tick-schedules.ts'
import { runRetention } from '../streams/retention.ts'
import { removeOldAttempts } from '../webhooks/attempt-retention.ts'
import type { DrainReport } from '../webhooks/engine/drain.ts'
import { readDueWork, type DueWork } from './due-work.ts'
import type { Parts } from './parts.ts'
import { runDrain, tellForeign, type DrainBudget } from './run-drain.ts'

/** What a cron run did. */
export interface CronReport extends DrainReport {
  /** Messages that schedules sent. */
  fired: number
  /** Messages of queues whose delay or lease was over. */
  swept: number
  /** Events, attempts and finished messages that were past their time. */
  removed: number
}

/** What a tick asks beside its schedules: what is due, the lock, a page, the lock back, what is due next. */
const tickOverhead = 5
/** A tick may have so much of the requests and of the time, lest a flood of schedules keep webhooks waiting. */
const tickShare = 0.3
/** So much of the requests is kept for what only tidies up; on the smallest budgets it takes what is left. */
const tidyShare = 0.2
const smallBudget = 40
/** More is left to the next run. */
const maxSweeps = 3

/**
 * Everything that is due, within a budget: leases that ran out, schedules, webhooks, then what is past its
 * time. It first asks, in one statement, what of all that there is; with nothing due, that is all. A part
 * that fails is logged and leaves the others to their work.
 */
export async function runCron(parts: Parts, ports: Ports, budget: DrainBudget): Promise<CronReport> {
  const { db, settings } = parts
  const endAt = ports.clock.now() + budget.ms
  const due = await readDueWork(db)
  const report: CronReport = {
    ...{ webhooks: 0, cut: false, nextDueInMs: null, foreignEnvironment: null },
    ...{ fired: 0, swept: 0, removed: 0 },
  }
  if (!due.ours) {
    tellForeign(due.environment, settings.environment, ports)
    return { ...report, foreignEnvironment: { environment: due.environment } }
  }
  const purse = createPurse(budget.requests - 1)
  const safely = orLog(ports)
  if (due.sweep) await safely('sweep', () => sweep(db, purse, report))
  if (due.schedules) await safely('schedules', () => tick(db, ports, { purse, budget, report }))
  if (due.webhooks || report.fired > 0) {
    const requests = purse.takeAllBut(budget.requests < smallBudget ? 2 : budget.requests * tidyShare)
    const ms = Math.max(0, endAt - ports.clock.now())
    await safely('webhooks', async () => {
      Object.assign(report, await runDrain(parts, ports, { kind: 'all' }, { ms, requests }))
    })
  }
  await tidy(db, ports, { due, purse, report, safely, endAt })
  return report
}

async function sweep(db: Db, purse: Purse, report: CronReport): Promise<void> {
  for (let times = 0; times < maxSweeps && purse.take(); times++) {
    const { released, died, removed, more } = await sweepQueues(db)
    report.swept += released + died
    report.removed += removed
    if (!more) return
  }
}

interface TickParts {
  purse: Purse
  budget: DrainBudget
  report: CronReport
}

async function tick(db: Db, ports: Ports, { purse, budget, report }: TickParts): Promise<Tick> {
  const limit = Math.max(1, Math.floor(budget.requests * tickShare) - tickOverhead)
  purse.take(tickOverhead + limit)
  const ending = new AbortController()
  const timer = ports.clock.setTimeout(() => ending.abort(), budget.ms * tickShare)
  try {
    const ticked = await tickSchedules(db, ports, { limit, signal: ending.signal })
    report.fired = ticked.fired
    // a failure is written down, which is one more
    purse.take(ticked.failed)
    return ticked
  } finally {
    ports.clock.clearTimeout(timer)
  }
}

interface TidyParts {
  due: DueWork
  purse: Purse
  report: CronReport
  safely: ReturnType<typeof orLog>
  endAt: number
}

async function tidy(db: Db, { clock }: Ports, parts: TidyParts): Promise<void> {
  const { due, purse, report, safely, endAt } = parts
  const mayGoOn = (): boolean => clock.now() < endAt && purse.take()
  if (due.retention && mayGoOn()) {
    await safely('retention', async () => {
      report.removed += (await runRetention(db, { clock, mayGoOn })).deleted
    })
  }
  if (due.attempts) {
    await safely('attempts', async () => {
      report.removed += await removeOldAttempts(db, { isOver: () => !mayGoOn() })
    })
  }
  if (due.locks && mayGoOn()) await safely('locks', () => purgeLocks(db))
}

interface Purse {
  /** Takes so many requests, by default one; false: there are not so many, and now there are none. */
  take(requests?: number): boolean
  /** Takes what there is but for so many. */
  takeAllBut(requests: number): number
}

function createPurse(requests: number): Purse {
  let left = requests
  return {
    take(wanted = 1) {
      left -= wanted
      return left >= 0
    },
    takeAllBut(kept) {
      const taken = Math.max(0, Math.floor(left - kept))
      left -= taken
      return taken
    },
  }
}

function orLog({ log }: Ports) {
  return async (task: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.warn({ task, err: error }, 'a part of the cron run failed; the next run tries again')
    }
  }
}
