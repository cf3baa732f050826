import { sql, type SQL } from 'drizzle-orm'
import { toDate, toDateOrNull } from '../db/decode.ts'
import { isOurs } from '../db/fence.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/** When something is due, for a timer. */
export interface NextDue {
  /** By the database's clock; in the past: it is due. */
  at: Date
  /** Milliseconds from now by the database's clock, 0 and more: what a local timer should wait. */
  inMs: number
}

/** When the next boundary of any schedule is due, or the next retry of one that failed; null: never. */
export async function nextDueAt(db: Executor): Promise<NextDue | null> {
  const { at, now } = await readDue(db)
  return at === null ? null : { at, inMs: Math.max(0, at.getTime() - now.getTime()) }
}

/** The database's time, when the next boundary is due, and whether this process may fire it (W7). */
export async function readDue(db: Executor): Promise<{ now: Date; at: Date | null; ours: boolean }> {
  const [row] = await runQuery<{ now: unknown; at: unknown; ours: boolean }>(db, nextDueStatement(db))
  return { now: toDate(row?.now), at: toDateOrNull(row?.at), ours: row?.ours === true }
}

/** Whether a tick would fire something, as a condition. */
export function schedulesAreDue(on: Executor): SQL<boolean> {
  return sql`exists (
    select 1 from ${on.tables.schedules} s
    where not s.paused and s.next_at is not null and greatest(s.next_at, s.retry_at) <= clock_timestamp())`
}

/** Reads the first entry of the index `schedules_due`. */
export function nextDueStatement(db: Executor): SQL {
  return sql`select clock_timestamp() as now, ${isOurs(db)} as ours, (
    select greatest(s.next_at, s.retry_at) from ${db.tables.schedules} s
    where not s.paused and s.next_at is not null
    order by greatest(s.next_at, s.retry_at) limit 1) as at`
}
