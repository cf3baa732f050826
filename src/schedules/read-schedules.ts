import { asc, eq, gt } from 'drizzle-orm'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { scheduleColumns, toSchedule } from './rows.ts'
import type { Schedule } from './schedule.ts'

/** A page of {@link listSchedules} holds at most so many. */
const maxPage = 1000

/** The schedule of a name, or null. */
export async function getSchedule(db: Db, name: string, options: TxOption = {}): Promise<Schedule | null> {
  const on = executorFor(db, options)
  const { schedules } = on.tables
  const [row] = await translated(
    on.drizzle.select(scheduleColumns(on)).from(schedules).where(eq(schedules.name, name)),
  )
  return row === undefined ? null : toSchedule(row)
}

/** What {@link listSchedules} returns. */
export interface SchedulePage {
  schedules: Schedule[]
  /** Read on from here: pass it as `after`; null: that was all. */
  next: string | null
}

/**
 * Schedules in the order of their names, a page at a time.
 *
 * @param range `after`: what comes after this name; `limit`: 1 to 1000, default 100
 */
export async function listSchedules(
  db: Db,
  range: { after?: string; limit?: number } = {},
): Promise<SchedulePage> {
  const { schedules } = db.tables
  const limit = Math.max(1, Math.min(Math.floor(range.limit ?? 100), maxPage))
  const rows = await translated(
    db.drizzle
      .select(scheduleColumns(db))
      .from(schedules)
      .where(range.after === undefined ? undefined : gt(schedules.name, range.after))
      .orderBy(asc(schedules.name))
      .limit(limit + 1),
  )
  const page = rows.slice(0, limit)
  return { schedules: page.map(toSchedule), next: rows.length > limit ? page.at(-1)!.name : null }
}

/** The error for a schedule that is not there. */
export function noSchedule(name: string): MillraceError {
  return new MillraceError('NOT_FOUND', `there is no schedule "${name}"`, { details: { schedule: name } })
}
