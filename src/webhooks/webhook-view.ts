import { sql, type SQL } from 'drizzle-orm'
import { isoText } from '../db/iso-text.ts'
import type { Executor } from '../db/port.ts'
import { qualified } from '../db/run.ts'

/** Counting a lag further than this costs more than the number is worth. */
export const maxCountedLag = 10_000

/** A webhook as an operator reads it. Its secrets are not in it. */
export interface WebhookView {
  /** `wh_` and 20 letters and digits. */
  id: string
  stream: string
  url: string
  /** Event types it delivers, `*` allowed at the end; null: all. */
  types: string[] | null
  ordering: 'stream' | 'key' | 'none'
  format: 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'
  signature: 'v1' | 'v1a'
  state: 'active' | 'paused' | 'disabled'
  /** Why it is disabled, in words for a person. */
  stateReason: string | null
  maxAttempts: number
  /** Delays before each attempt in milliseconds; null: the default schedule. */
  scheduleMs: number[] | null
  jitterPercent: number
  timeoutMs: number
  /** Requests per second; null: unlimited. */
  rateLimit: number | null
  headers: Record<string, string>
  /** Every matching event up to here is delivered, or counted below. */
  offset: number
  /** How many events, matching or not, lie between the offset and the horizon: at most 10,000 are counted. */
  lag: number
  /** There are more than `lag` says. */
  lagCapped: boolean
  /** Deliveries that failed and will be tried again. */
  retrying: number
  /** Deliveries that wait behind a retrying one of their key. */
  blocked: number
  /** Deliveries that ran out of attempts. */
  dead: number
  /** ISO 8601, UTC. */
  createdAt: string
}

/**
 * The CTE `heads`, to stand behind a CTE `page` that holds rows of webhooks: the horizon of each of
 * their streams, looked up once a stream.
 */
export function headsCte(on: Executor): SQL {
  return sql`heads as materialized (
    select d.stream_id, h.o_horizon as horizon
    from (select distinct p.stream_id from page p) d cross join lateral ${qualified(on, 'horizon')}(d.stream_id) h)`
}

/** Rows of {@link WebhookView} as JSON text in `view`, from the CTEs `page` (with `stream_name`) and `heads`. */
export function viewSelect(on: Executor): SQL {
  const { events, deliveries } = on.tables
  return sql`select json_build_object(
      'id', p.id, 'stream', p.stream_name, 'url', p.url, 'types', p.types, 'ordering', p.ordering,
      'format', p.format, 'signature', p.signature, 'state', p.state, 'stateReason', p.state_reason,
      'maxAttempts', p.max_attempts, 'scheduleMs', p.schedule_ms, 'jitterPercent', p.jitter_percent,
      'timeoutMs', p.timeout_ms, 'rateLimit', p.rate_limit, 'headers', coalesce(p.headers, '{}'),
      'offset', p."offset", 'lag', least(behind.events, ${maxCountedLag}::bigint),
      'lagCapped', behind.events > ${maxCountedLag}::bigint,
      'retrying', trouble.retrying, 'blocked', trouble.blocked, 'dead', trouble.dead,
      'createdAt', ${isoText(sql`p.created_at`)}
    )::text as view
    from page p
    join heads h on h.stream_id = p.stream_id
    cross join lateral (
      select count(*) as events from (
        select from ${events} e
        where e.stream_id = p.stream_id and e."offset" > p."offset" and e."offset" <= h.horizon
        limit ${maxCountedLag + 1}::bigint) counted) behind
    cross join lateral (
      select count(*) filter (where d.state = 'retrying') as retrying,
             count(*) filter (where d.state = 'blocked') as blocked,
             count(*) filter (where d.state = 'dead') as dead
      from ${deliveries} d where d.webhook_id = p.id) trouble
    order by p.id`
}

/** A row of {@link viewSelect} as a {@link WebhookView}. */
export function toWebhookView(row: { view: string }): WebhookView {
  return JSON.parse(row.view) as WebhookView
}
