import { sql, type SQL } from 'drizzle-orm'
import { toNumberOrNull } from '../db/decode.ts'
import { isOurs } from '../db/fence.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/**
 * In how many milliseconds a sweep will have something to do, by the database's clock: a delay or a lease
 * is over, a finished message or a dedupe key past its time. 0: there is something now; null: there will be
 * nothing, as things stand, or the database belongs to another environment. One entry of an index for each
 * queue and kind.
 */
export async function nextSweepInMs(db: Db): Promise<number | null> {
  const [row] = await runQuery<{ in_ms: string | null }>(
    db,
    sql`select ceil(extract(epoch from ${nextSweepAt(db)} - clock_timestamp()) * 1000)::bigint::text as in_ms
      where ${isOurs(db)}`,
  )
  const inMs = toNumberOrNull(row?.in_ms ?? null)
  // here, since the database's greatest() would make 0 of null
  return inMs === null ? null : Math.max(0, inMs)
}

/** Whether a sweep would do something now, as a condition. */
export function sweepIsDue(db: Db): SQL<boolean> {
  return sql`coalesce(${nextSweepAt(db)} <= clock_timestamp(), false)`
}

function nextSweepAt({ tables: { queues, messages, dedupeKeys } }: Db): SQL {
  return sql`least(
    (select min(e.expires_at) from ${dedupeKeys} e),
    (select min(least(w.at, d.at)) from ${queues} q
      cross join lateral (
        select min(m.due_at) as at from ${messages} m
          where m.queue_id = q.id and m.state in ('delayed', 'leased')
      ) w
      cross join lateral (
        select min(m.due_at) as at from ${messages} m where m.queue_id = q.id and m.state = 'done'
      ) d))`
}
