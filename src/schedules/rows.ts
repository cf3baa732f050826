import { sql } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import type { Schedule } from './schedule.ts'
import type { ValidTiming } from './timing.ts'

/** The columns of a schedule for a select or a `returning`; `data` is cast, which keeps it verbatim. */
export function scheduleColumns(on: Executor) {
  const { schedules: s } = on.tables
  return {
    name: s.name,
    targetKind: s.targetKind,
    target: s.target,
    cron: s.cron,
    timeZone: s.timeZone,
    everyMs: s.everyMs,
    catchUp: s.catchUp,
    type: s.type,
    key: s.key,
    dataText: sql<string>`${s.data}::text`,
    paused: s.paused,
    nextAt: s.nextAt,
    lastAt: s.lastAt,
    failures: s.failures,
    lastError: s.lastError,
    createdAt: s.createdAt,
    updatedAt: s.updatedAt,
  }
}

/** A row of {@link scheduleColumns}. */
export interface ScheduleRow extends Omit<Schedule, 'target'> {
  targetKind: 'stream' | 'queue'
  target: string
}

export function toSchedule({ targetKind, target, ...rest }: ScheduleRow): Schedule {
  return { ...rest, target: { kind: targetKind, name: target } }
}

/** The timing of a row; the table's checks see to it that it is one. */
export function timingOf(row: Pick<Schedule, 'cron' | 'timeZone' | 'everyMs'>): ValidTiming {
  return row.cron === null
    ? { cron: null, timeZone: null, everyMs: row.everyMs! }
    : { cron: row.cron, timeZone: row.timeZone!, everyMs: null }
}

/** Tells timers that the next due time may have changed; delivered at commit. */
export function wakeTimers(on: Executor) {
  return sql<null>`pg_notify(${`${on.schema}.wake`}::text, 't')`
}
