import { sql, type SQL } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { qualified } from '../db/run.ts'

/**
 * The stream on which Millrace tells what became of webhooks. Anyone may read it and register webhooks on
 * it; only Millrace publishes to it. Kept for 30 days.
 */
export const operationalStream = 'millrace.webhooks'

/** What is published to it; the key is the webhook's id, and so is `webhookId` in the data. */
export const operationalTypes = {
  /** `{webhookId, stream, reason}`: nothing more is sent until somebody resumes it. */
  disabled: 'webhook.disabled',
  /** `{webhookId, stream, offset, type, key, attempts, status, error}`: a delivery became a dead letter. */
  exhausted: 'webhook.exhausted',
  /** `{webhookId, stream, failingSince}`: the first success after failures. */
  recovered: 'webhook.recovered',
  /** `{webhookId, stream, overlapUntil}`: until then the old secret signs too. */
  secretRotated: 'webhook.secret_rotated',
} as const

/**
 * The CTE `announced`, which publishes in the midst of another statement, and so if and only if that one
 * commits. Without a notice it does nothing. It runs only where {@link wakeOfAnnounced} is selected too.
 *
 * @param notices a query with the columns `id` (the webhook's), `type`, `data` (json) and `place`, by which
 *   those of one webhook are ordered
 */
export function announced(db: Executor, notices: SQL): SQL {
  return sql`announced as materialized (
      select a.o_stream_id as stream_id from (
        select array_agg(n.type order by n.id, n.place) as types,
          array_agg(n.id order by n.id, n.place) as keys,
          array_agg(n.data::text order by n.id, n.place) as data,
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
