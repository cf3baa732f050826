import { sql } from 'drizzle-orm'
import { toDate, toNumberOrNull } from '../db/decode.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { describeError } from '../errors/describe-error.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import { releaseLock } from '../locks/hold.ts'
import { keepLock } from '../locks/keep-lock.ts'
import type { Lock } from '../locks/lock.ts'
import { attemptLock } from '../locks/try-acquire.ts'
import type { Ports } from '../ports.ts'
import { dueBoundaries } from './due-boundaries.ts'
import { fireSchedule } from './fire.ts'
import { nextDueAt, readDue } from './next-due.ts'
import { noteFailure } from './note-failure.ts'
import { timingOf } from './rows.ts'
import type { CatchUp, ScheduleTarget } from './schedule.ts'

/** The lock of whoever ticks. */
const leaderLock = 'millrace.schedules'
/** Their data is not read, so a page is small. */
const pageSize = 100
/** Below the six connections that an edge worker may have open. */
const concurrency = 4
/** Whoever is not the leader looks again no later than this: the leader may have died. */
const standbyMs = 1000

/** Options of {@link tickSchedules}. */
export interface TickOptions {
  /**
   * How long the leader's lock lasts: after its death nobody else fires for so long. 100 to 86,400,000 ms,
   * default 10,000.
   */
  leaderTtlMs?: number
  /** At most so many schedules, for platforms that count requests: each is one. Default: all that are due. */
  limit?: number
  /** Ends the tick after the schedules at hand. */
  signal?: AbortSignal
}

/** What {@link tickSchedules} returns. */
export interface Tick {
  /**
   * `idle`: nothing was due; `led`: this process fired what was; `standby`: another one was at it;
   * `foreign`: the database belongs to another environment, and nothing fires (W7).
   */
  role: 'idle' | 'led' | 'standby' | 'foreign'
  /** Messages sent. */
  fired: number
  /** Schedules whose firing failed; they are tried again, after 1 s, 2 s, 4 s … to 60 s. */
  failed: number
  /** When to tick again by a local timer; null: when a schedule is put. */
  nextDueInMs: number | null
}

/**
 * Fires everything that is due. Any number of processes may tick, as often as they like: one of them leads
 * (by a lock that it gives back at the end), and each boundary fires at most once even if two should take
 * themselves for the leader (Q5). What is due is decided by the database's clock (Q6). With nothing due it is
 * one query.
 *
 * @throws INVALID_INPUT; DATABASE_UNAVAILABLE and the like: what has not fired is still due
 */
export async function tickSchedules(
  db: Executor,
  ports: Pick<Ports, 'clock' | 'log'>,
  options: TickOptions = {},
): Promise<Tick> {
  const { now, at, ours } = await readDue(db)
  if (!ours) return { role: 'foreign', fired: 0, failed: 0, nextDueInMs: null }
  if (at === null || at > now) {
    const nextDueInMs = at === null ? null : at.getTime() - now.getTime()
    return { role: 'idle', fired: 0, failed: 0, nextDueInMs }
  }
  const ttlMs = options.leaderTtlMs ?? 10_000
  const askedAt = ports.clock.now()
  const attempt = await attemptLock(db, leaderLock, { ttlMs })
  if (!attempt.acquired) {
    return { role: 'standby', fired: 0, failed: 0, nextDueInMs: Math.min(attempt.heldForMs, standbyMs) }
  }
  const counts = { fired: 0, failed: 0 }
  const leadership = { db, log: ports.log, lock: attempt.lock, asOf: now, counts }
  const keeper = keepLock(db, ports, attempt.lock, { ttlMs, askedAt })
  try {
    const signal = options.signal ? AbortSignal.any([options.signal, keeper.lost]) : keeper.lost
    await fireAll(leadership, options.limit ?? Infinity, signal)
  } finally {
    keeper.stop()
    await giveBack(leadership)
  }
  return { role: 'led', ...counts, nextDueInMs: (await nextDueAt(db))?.inMs ?? null }
}

interface Leadership {
  db: Executor
  log: Ports['log']
  lock: Lock
  /** The tick fires what was due then, so that it ends however short the schedules are. */
  asOf: Date
  counts: { fired: number; failed: number }
}

async function fireAll(led: Leadership, limit: number, signal: AbortSignal): Promise<void> {
  for (let left = limit; left > 0 && !signal.aborted; left -= pageSize) {
    const size = Math.min(pageSize, left)
    const page = await readPage(led, size)
    const firing = page.values()
    const lane = async (): Promise<void> => {
      for (const due of firing) {
        if (signal.aborted) return
        await fireOne(led, due)
      }
    }
    throwFirst(await Promise.allSettled(Array.from({ length: concurrency }, lane)))
    if (page.length < size) return
  }
}

function throwFirst(results: PromiseSettledResult<void>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

interface DueSchedule {
  name: string
  kind: ScheduleTarget['kind']
  cron: string | null
  time_zone: string | null
  every_ms: string | null
  catch_up: CatchUp
  revision: string
  next_at: unknown
}

function readPage(led: Leadership, size: number): Promise<DueSchedule[]> {
  return runQuery<DueSchedule>(
    led.db,
    sql`select s.name, s.target_kind as kind, s.cron, s.time_zone, s.every_ms::text, s.catch_up,
        s.revision::text, s.next_at
      from ${led.db.tables.schedules} s
      where not s.paused and s.next_at is not null
        and greatest(s.next_at, s.retry_at) <= ${led.asOf.toISOString()}::timestamptz
      order by greatest(s.next_at, s.retry_at)
      limit ${size}`,
  )
}

async function fireOne(led: Leadership, row: DueSchedule): Promise<void> {
  try {
    const timing = timingOf({
      cron: row.cron,
      timeZone: row.time_zone,
      everyMs: toNumberOrNull(row.every_ms),
    })
    const due = dueBoundaries(timing, row.catch_up, toDate(row.next_at), led.asOf)
    const sent = await fireSchedule(led.db, led.lock, {
      name: row.name,
      targetKind: row.kind,
      revision: row.revision,
      due,
    })
    led.counts.fired += sent?.length ?? 0
  } catch (error) {
    const failure = isMillraceError(error) ? error : unexpected(error)
    // Not the schedule's fault, and nothing could be noted.
    if (failure.code === 'DATABASE_UNAVAILABLE') throw failure
    led.counts.failed++
    led.log.error({ schedule: row.name, err: failure }, 'A schedule could not fire')
    await noteFailure(led.db, row, failure)
  }
}

/** Such as a time zone that this runtime does not know. */
function unexpected(error: unknown): MillraceError {
  const message = `the next boundary could not be computed: ${describeError(error)}`
  return new MillraceError('INTERNAL', message, { cause: error })
}

/** A failure here delays the next tick until the lock runs out, and is no failure of this one. */
async function giveBack(led: Leadership): Promise<void> {
  try {
    await releaseLock(led.db, led.lock)
  } catch (error) {
    led.log.warn({ err: error }, "The leader's lock could not be given back; it ends by itself")
  }
}
