import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/** How far delivery is behind, in the whole database. */
export interface DeliveryBacklog {
  webhooks: { active: number; paused: number; disabled: number }
  deliveries: { retrying: number; blocked: number; dead: number }
  /** Active webhooks that have events to come, counted up to 1000. */
  behind: number
  /** How long ago the oldest event that one of them still has to take from its stream was published; 0: none. */
  lagSeconds: number
}

/** So many webhooks that are behind are looked at: more is an outage, whatever the number. */
const maxBehind = 1_000

/** Reads how far delivery is behind, for metrics. One statement. */
export async function deliveryBacklog(db: Db): Promise<DeliveryBacklog> {
  const { webhooks, deliveries, events } = db.tables
  const [row] = await runQuery<{ backlog: string; lag_ms: string }>(
    db,
    sql`with behind as materialized (
        select (
          select e.published_at from ${events} e where e.stream_id = w.stream_id and e."offset" > w."offset"
          order by e."offset" limit 1) as since
        from ${webhooks} w
        where w.state = 'active'
          and exists (select 1 from ${events} e where e.stream_id = w.stream_id and e."offset" > w."offset")
        limit ${maxBehind}::integer
      )
      select json_build_object(
        'webhooks', (select json_build_object(
          'active', count(*) filter (where w.state = 'active'),
          'paused', count(*) filter (where w.state = 'paused'),
          'disabled', count(*) filter (where w.state = 'disabled')) from ${webhooks} w),
        'deliveries', (select json_build_object(
          'retrying', count(*) filter (where d.state = 'retrying'),
          'blocked', count(*) filter (where d.state = 'blocked'),
          'dead', count(*) filter (where d.state = 'dead')) from ${deliveries} d),
        'behind', (select count(*) from behind))::text as backlog,
        (select greatest(coalesce(extract(epoch from clock_timestamp() - min(b.since)), 0), 0) * 1000
          from behind b)::bigint::text as lag_ms`,
  )
  if (row === undefined) throw new Error('the backlog returned no row')
  return {
    ...(JSON.parse(row.backlog) as Omit<DeliveryBacklog, 'lagSeconds'>),
    lagSeconds: toNumber(row.lag_ms) / 1000,
  }
}
