import { and, eq, sql } from 'drizzle-orm'
import { toDate } from '../db/decode.ts'
import { assertNoBatch } from '../db/batch.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { noSchedule } from './read-schedules.ts'
import { scheduleColumns, timingOf, toSchedule, wakeTimers } from './rows.ts'
import type { Schedule } from './schedule.ts'
import { nextBoundary } from './timing.ts'

/** Deletes a schedule; returns whether there was one. What it has sent stays. */
export async function deleteSchedule(db: Db, name: string, options: TxOption = {}): Promise<boolean> {
  const on = executorFor(db, options)
  const { schedules } = on.tables
  const rows = await translated(
    on.drizzle.delete(schedules).where(eq(schedules.name, name)).returning({ name: schedules.name }),
  )
  return rows.length === 1
}

/**
 * Stops a schedule from firing until it is resumed. Boundaries that are due and have not fired do not
 * fire either.
 *
 * @throws NOT_FOUND
 */
export async function pauseSchedule(db: Db, name: string, options: TxOption = {}): Promise<Schedule> {
  const on = executorFor(db, options)
  const { schedules } = on.tables
  const [row] = await translated(
    on.drizzle
      .update(schedules)
      .set({ paused: true, revision: sql`gen_random_uuid()`, updatedAt: sql`clock_timestamp()` })
      .where(eq(schedules.name, name))
      .returning(scheduleColumns(on)),
  )
  if (row === undefined) throw noSchedule(name)
  return toSchedule(row)
}

/** Somebody would have to change the schedule each time between two statements. */
const maxTries = 10

/**
 * Lets a paused schedule fire again, from the first boundary after now: what fell into the pause was not
 * missed but unwanted. One that is not paused stays as it is.
 *
 * @throws NOT_FOUND; DATABASE_BUSY if others keep changing it
 */
export async function resumeSchedule(db: Db, name: string, options: TxOption = {}): Promise<Schedule> {
  const on = executorFor(db, options)
  assertNoBatch(on, 'resuming a schedule')
  for (let attempt = 0; attempt < maxTries; attempt++) {
    const current = await readWithClock(on, name)
    if (current === undefined) throw noSchedule(name)
    if (!current.schedule.paused) return current.schedule
    const resumed = await resumeAt(
      on,
      name,
      current.revision,
      nextBoundary(timingOf(current.schedule), current.now),
    )
    if (resumed !== undefined) return resumed
  }
  throw new MillraceError('DATABASE_BUSY', `the schedule "${name}" keeps being changed by others`)
}

async function readWithClock(on: Executor, name: string) {
  const { schedules } = on.tables
  const [row] = await translated(
    on.drizzle
      .select({
        ...scheduleColumns(on),
        revision: schedules.revision,
        now: sql<unknown>`clock_timestamp()`,
      })
      .from(schedules)
      .where(eq(schedules.name, name)),
  )
  if (row === undefined) return undefined
  const { revision, now, ...rest } = row
  return { schedule: toSchedule(rest), revision, now: toDate(now) }
}

async function resumeAt(
  on: Executor,
  name: string,
  revision: string,
  nextAt: Date | null,
): Promise<Schedule | undefined> {
  const { schedules } = on.tables
  const [row] = await translated(
    on.drizzle
      .update(schedules)
      .set({
        paused: false,
        nextAt,
        revision: sql`gen_random_uuid()`,
        failures: 0,
        lastError: null,
        retryAt: null,
        updatedAt: sql`clock_timestamp()`,
      })
      .where(and(eq(schedules.name, name), eq(schedules.revision, revision)))
      .returning({ ...scheduleColumns(on), woken: wakeTimers(on) }),
  )
  if (row === undefined) return undefined
  const { woken: _, ...stored } = row
  return toSchedule(stored)
}
