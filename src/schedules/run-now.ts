import { sql } from 'drizzle-orm'
import { toDate, toNumber, toNumbers } from '../db/decode.ts'
import { assertNoBatch } from '../db/batch.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { isoText } from '../db/iso-text.ts'
import { runQuery } from '../db/run.ts'
import { noSchedule, getSchedule } from './read-schedules.ts'
import { dueAtHeader, scheduleHeader, sendStatement } from './targets.ts'

/** What {@link runNow} returns. */
export interface RanNow {
  /** The due time that the message carries: the database's time of the call. */
  dueAt: Date
  /** The offset of the event, or the id of the message. */
  number: number
}

/**
 * Sends the message of a schedule once, at once, also while it is paused. Its boundaries stay as they are.
 *
 * @throws NOT_FOUND
 */
export async function runNow(db: Db, name: string, options: TxOption = {}): Promise<RanNow> {
  const on = executorFor(db, options)
  assertNoBatch(on, 'running a schedule')
  const schedule = await getSchedule(db, name, options)
  if (schedule === null) throw noSchedule(name)
  const { schedules } = on.tables
  const headers = sql`array[(select h.headers from header h)]`
  const [row] = await runQuery<{ numbers: unknown; due_at: string }>(
    on,
    sql`with clock as materialized (
        select ${isoText(sql`clock_timestamp()`)} as due_at
      ), header as materialized (
        select json_build_object(${scheduleHeader}::text, ${name}::text, ${dueAtHeader}::text, c.due_at)::text as headers
        from clock c
      ), wanted as (
        select s.target, s.type, s.key, s.data::text as data from ${schedules} s
        where s.name = ${name} and s.target_kind = ${schedule.target.kind}
      ), sent as materialized (${sendStatement(on, schedule.target.kind, sql`wanted`, headers)})
      select sent.numbers, c.due_at from sent, clock c`,
  )
  if (row === undefined) throw noSchedule(name)
  const number = toNumber(toNumbers(row.numbers)[0])
  return { dueAt: toDate(row.due_at), number }
}
