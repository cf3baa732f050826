import { sql, type SQL } from 'drizzle-orm'
import { isOurs } from '../db/fence.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/**
 * Deletes the rows of locks that nobody has held for a day, at most 1000 at a time; returns how many.
 * Fences are numbered across all locks, so a lock that is taken again later still gets a higher one; the
 * day is for a contender that drew its number and was then held up before it could insert it. In a database
 * of another environment nothing goes (W7).
 */
export async function purgeLocks(db: Executor): Promise<number> {
  const { locks } = db.tables
  const rows = await runQuery<{ name: string }>(
    db,
    sql`delete from ${locks} l where l.name in (
        select o.name from ${locks} o where ${isForgotten} and ${isOurs(db)}
        order by o.until limit 1000 for update skip locked)
      returning l.name`,
  )
  return rows.length
}

/** Of a lock `o`. */
const isForgotten = sql`o.until < clock_timestamp() - interval '1 day'`

/** Whether there are such rows, as a condition. */
export function locksAreForgotten(db: Executor): SQL<boolean> {
  return sql`exists (select 1 from ${db.tables.locks} o where ${isForgotten})`
}
