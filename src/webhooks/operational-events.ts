import { sql, type SQL } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { qualified } from '../db/run.ts'

/**
 * The stream on which Millrace tells what became of webhooks. Anyone may read it and register webhooks on
 * it; only Millrace publishes to it. Kept for 30 days.
 */
export const operationalStream = 'millrace.webhooks'

/**
 * `{webhookId, stream, overlapUntil}`: until then the old secret signs too. The key is the webhook's id, as that of all
 * that is published there; what flushes tell (disabled, exhausted, recovered) stands in drizzle/0014_flush_outcomes.sql.
 */
export const secretRotated = 'webhook.secret_rotated'

/**
 * The CTE `announced`, which publishes in the midst of another statement, and so if and only if that one
 * commits. Without a notice it does nothing. It runs only where {@link wakeOfAnnounced} is selected too.
 *
 * @param notices a query with the columns `id` (the webhook's), `type` and `data` (json)
 */
export function announced(db: Executor, notices: SQL): SQL {
  return sql`announced as materialized (
      select a.o_stream_id as stream_id from (
        select array_agg(n.type order by n.id) as types,
          array_agg(n.id order by n.id) as keys,
          array_agg(n.data::text order by n.id) as data,
          array_agg(null::text) as headers
        from (${notices}) n having count(*) > 0
      ) b cross join lateral ${qualified(db, 'append')}(
        ${operationalStream}::text, b.types, b.keys, b.data, b.headers, null::text, null::text) a
    )`
}

/** Wakes the readers of what {@link announced} has published. */
export function wakeOfAnnounced(db: Executor): SQL {
  return sql`(select ${qualified(db, 'wake_stream')}(a.stream_id) from announced a)`
}
