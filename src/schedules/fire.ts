import { sql, type SQL } from 'drizzle-orm'
import { textArray } from '../db/array-literal.ts'
import { toNumbers } from '../db/decode.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { HeldLock } from '../locks/lock.ts'
import type { DueBoundaries } from './due-boundaries.ts'
import type { ScheduleTarget } from './schedule.ts'
import { dueAtHeader, scheduleHeader, sendStatement } from './targets.ts'

/** A schedule as it was read, and what is to be done with it. */
export interface Firing {
  name: string
  targetKind: ScheduleTarget['kind']
  /** The revision that the boundaries were computed from. */
  revision: string
  due: DueBoundaries
}

/**
 * Moves a schedule on and sends the messages of the boundaries that fire: one statement, so one
 * transaction on every driver. It compares the revision, which each change renews, and asks for the
 * leader's lock: whoever is late changes nothing. So a boundary fires at most once (Q5), however many
 * schedulers there are and wherever they are killed.
 *
 * @returns the offsets or message ids; null when another was first, or the leader's lock is lost
 */
export async function fireSchedule(on: Executor, leader: HeldLock, firing: Firing): Promise<number[] | null> {
  const [row] = await runQuery<{ numbers: unknown }>(
    on,
    firing.due.fire.length === 0 ? skipStatement(on, leader, firing) : fireStatement(on, leader, firing),
  )
  return row === undefined ? null : toNumbers(row.numbers)
}

function skipStatement(on: Executor, leader: HeldLock, firing: Firing): SQL {
  return sql`with advanced as (${advance(on, leader, firing)}) select '{}'::text as numbers from advanced`
}

function fireStatement(on: Executor, leader: HeldLock, firing: Firing): SQL {
  const headers = firing.due.fire.map((at) =>
    JSON.stringify({ [scheduleHeader]: firing.name, [dueAtHeader]: at.toISOString() }),
  )
  return sql`with advanced as (${advance(on, leader, firing)})
    ${sendStatement(on, firing.targetKind, sql`advanced`, textArray(headers))}`
}

function advance(on: Executor, leader: HeldLock, { name, revision, due }: Firing): SQL {
  const { schedules, locks } = on.tables
  const last = due.fire.at(-1)?.toISOString() ?? null
  return sql`
    update ${schedules} s
    set next_at = ${due.next?.toISOString() ?? null}::timestamptz,
        last_at = coalesce(${last}::timestamptz, s.last_at),
        revision = gen_random_uuid(), failures = 0, last_error = null, retry_at = null
    where s.name = ${name} and s.revision = ${revision}::uuid and not s.paused
      and exists (
        select 1 from ${locks} l
        where l.name = ${leader.name} and l.token = ${leader.token}::uuid and l.until > clock_timestamp())
    returning s.target, s.type, s.key, s.data::text as data`
}
