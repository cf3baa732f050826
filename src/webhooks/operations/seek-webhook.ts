import { sql, type SQL } from 'drizzle-orm'
import { toNumber } from '../../db/decode.ts'
import type { Db } from '../../db/port.ts'
import { qualified, runQuery } from '../../db/run.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import { assertOffset } from '../../streams/read-events.ts'
import { noWebhook } from '../get-webhook.ts'
import { isWebhookId } from '../webhook-id.ts'

/** Where to move a webhook: after an offset, or to the first event published at or after a time. */
export type SeekTarget = { offset: number } | { time: Date }

/**
 * Moves a webhook in its stream, back or forth; what comes after that place is delivered (again). Deliveries
 * in trouble beyond it, dead letters too, are forgotten, since they come again; those before it go on. The lease of whoever is
 * delivering ends, so what is on its way may still arrive. Returns the offset. One statement.
 *
 * @throws NOT_FOUND, INVALID_INPUT, OFFSET_AHEAD
 */
export async function seekWebhook(db: Db, id: string, target: SeekTarget): Promise<number> {
  if (!isWebhookId(id)) throw noWebhook()
  if ('offset' in target) assertOffset('offset', target.offset)
  const { webhooks, deliveries } = db.tables
  const [row] = await runQuery<{ to: string; last: string; moved: boolean }>(
    db,
    sql`with found as (
        select w.id, w.stream_id, ${qualified(db, 'last_offset')}() as last from ${webhooks} w
        where w.id = ${id}::text for update
      ), place as materialized (select f.*, ${placeOf(db, target)} as "to" from found f),
      moved as (
        update ${webhooks} w set "offset" = p."to", lease_token = null, lease_until = null,
          lease_fence = w.lease_fence + 1, saturated = false,
          due_at = (select min(d.due_at) from ${deliveries} d
            where d.webhook_id = w.id and d.state = 'retrying' and d."offset" <= p."to"),
          updated_at = clock_timestamp()
        from place p where w.id = p.id and p."to" <= p.last returning w.id
      ), forgotten as (
        delete from ${deliveries} d using place p, moved m
        where d.webhook_id = p.id and m.id = p.id and d."offset" > p."to"
      )
      select p."to"::text, p.last::text, exists (select 1 from moved) as moved,
        ${qualified(db, 'wake_webhook')}(p.id), ${qualified(db, 'wake_stream')}(p.stream_id)
      from place p`,
  )
  if (row === undefined) throw noWebhook()
  if (row.moved) return toNumber(row.to)
  throw new MillraceError(
    'OFFSET_AHEAD',
    `offset ${row.to} lies beyond ${row.last}, the last one given out`,
    {
      details: { field: 'offset', last: toNumber(row.last) },
    },
  )
}

function placeOf(db: Db, target: SeekTarget): SQL {
  if ('offset' in target) return sql`${target.offset}::bigint`
  return sql`${qualified(db, 'offset_at')}(f.stream_id, ${target.time.toISOString()}::timestamptz)`
}
