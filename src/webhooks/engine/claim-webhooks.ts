import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../../db/array-literal.ts'
import { toNumberOrNull } from '../../db/decode.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'

/** Which webhooks a claim looks at; those with a due retry are always among them. */
export type ClaimScope =
  | { kind: 'all' }
  | { kind: 'due' }
  | { kind: 'streams'; streamIds: readonly number[] }
  | { kind: 'webhooks'; ids: readonly string[] }

/** What {@link claimWebhooks} takes. */
export interface ClaimRequest {
  scope: ClaimScope
  /** A fresh random UUID: proves that the lease is this worker's. */
  token: string
  leaseMs: number
  /** At most so many webhooks. */
  limit: number
  /** The environment this worker was started for; a database of another one hands out nothing (W7). */
  environment: string | null
}

/** A webhook as leased. */
export interface ClaimedWebhook {
  id: string
  streamId: number
  stream: string
  url: string
  types: string[] | null
  ordering: 'stream' | 'key' | 'none'
  format: 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'
  maxAttempts: number
  scheduleMs: number[] | null
  jitterPercent: number
  timeoutMs: number
  rateLimit: number | null
  headers: Record<string, string>
  offset: number
  saturated: boolean
  /** Milliseconds until its earliest retry is due, 0 and less: now; null: it has none. */
  dueInMs: number | null
  /** Every secret that signs, the current one first. */
  secrets: { id: string; sealed: string }[]
  /** Ordering units in which something is retrying or blocked. */
  units: string[]
  /** Retrying deliveries that belong to no unit, counted up to 1000. */
  loose: number
}

/** What {@link claimWebhooks} returns. */
export interface Claim {
  webhooks: ClaimedWebhook[]
  /** Milliseconds until something not claimed now may be: a retry falls due, another's lease ends. Null: nothing. */
  nextDueInMs: number | null
  installationId: string
  /** The environment the database belongs to. */
  environment: string | null
}

/**
 * Leases active webhooks that have work and that nobody else holds, quiet ones before busy ones. One
 * statement. Events above the horizon count as work here; whoever then reads finds out.
 */
export async function claimWebhooks(db: Db, request: ClaimRequest): Promise<Claim> {
  const [row] = await runQuery<ClaimRow>(db, claimStatement(db, request))
  if (row === undefined) throw new Error('the claim returned no row')
  return {
    webhooks: JSON.parse(row.webhooks) as ClaimedWebhook[],
    nextDueInMs: toNumberOrNull(row.next_due_in_ms),
    installationId: row.installation_id,
    environment: row.environment,
  }
}

interface ClaimRow {
  webhooks: string
  next_due_in_ms: string | null
  installation_id: string
  environment: string | null
}

function claimStatement(db: Db, request: ClaimRequest): SQL {
  const { webhooks, streams, installation } = db.tables
  return sql`
    with heads as materialized (${streamHeads(db, request.scope)}),
    candidate as (
      select w.id from ${webhooks} w left join heads h on h.id = w.stream_id
      where w.state = 'active'
        and (w.lease_until is null or w.lease_until <= now())
        and (w.due_at <= now() or (not w.saturated and h.head > w."offset"))
        and ${inScope(request.scope)}
        and exists (
          select 1 from ${installation} i where i.environment is not distinct from ${request.environment}::text)
      order by w.lease_fence, w.id
      limit ${request.limit}
      for update of w skip locked
    ), leased as (
      update ${webhooks} w
      set lease_token = ${request.token}::uuid,
          lease_until = clock_timestamp() + ${request.leaseMs}::integer * interval '1 millisecond',
          lease_fence = w.lease_fence + 1
      from candidate c where w.id = c.id
      returning w.*
    )
    select
      (select coalesce(json_agg(${webhookJson(db)}), '[]') from leased l join ${streams} s on s.id = l.stream_id)::text
        as webhooks,
      ${nextDueInMs(db)} as next_due_in_ms,
      i.id::text as installation_id,
      i.environment
    from ${installation} i`
}

function streamHeads(db: Db, scope: ClaimScope): SQL {
  const { streams, events, webhooks } = db.tables
  const wanted =
    scope.kind === 'streams'
      ? sql`s.id = any (${bigintArray(scope.streamIds)})`
      : scope.kind === 'webhooks'
        ? sql`s.id in (select w.stream_id from ${webhooks} w where w.id = any (${textArray(scope.ids)}))`
        : scope.kind === 'all'
          ? sql`true`
          : sql`false`
  return sql`select s.id, (select max(e."offset") from ${events} e where e.stream_id = s.id) as head
    from ${streams} s where ${wanted}`
}

function inScope(scope: ClaimScope): SQL {
  switch (scope.kind) {
    case 'all':
      return sql`true`
    case 'due':
      return sql`w.due_at <= now()`
    case 'streams':
      return sql`(w.stream_id = any (${bigintArray(scope.streamIds)}) or w.due_at <= now())`
    case 'webhooks':
      return sql`w.id = any (${textArray(scope.ids)})`
  }
}

function webhookJson(db: Db): SQL {
  const { webhookSecrets, deliveries } = db.tables
  return sql`json_build_object(
    'id', l.id, 'streamId', l.stream_id, 'stream', s.name, 'url', l.url, 'types', l.types,
    'ordering', l.ordering, 'format', l.format, 'maxAttempts', l.max_attempts, 'scheduleMs', l.schedule_ms,
    'jitterPercent', l.jitter_percent, 'timeoutMs', l.timeout_ms, 'rateLimit', l.rate_limit,
    'headers', coalesce(l.headers, '{}'), 'offset', l."offset", 'saturated', l.saturated,
    'dueInMs', ceil(extract(epoch from l.due_at - now()) * 1000),
    'secrets', (
      select coalesce(json_agg(json_build_object('id', k.id, 'sealed', k.sealed)
        order by k.expires_at desc nulls first, k.created_at desc), '[]')
      from ${webhookSecrets} k
      where k.webhook_id = l.id and (k.expires_at is null or k.expires_at > now())),
    'units', (
      select coalesce(json_agg(distinct d.unit), '[]') from ${deliveries} d
      where d.webhook_id = l.id and d.state <> 'dead' and d.unit is not null),
    'loose', (
      select count(*) from (
        select 1 from ${deliveries} d
        where d.webhook_id = l.id and d.state = 'retrying' and d.unit is null limit 1000) t))`
}

function nextDueInMs(db: Db): SQL {
  const { webhooks } = db.tables
  return sql`(
    select ceil(extract(epoch from min(t.at) - clock_timestamp()) * 1000)::bigint::text from (
      select min(w.due_at) as at from ${webhooks} w where w.state = 'active' and w.due_at > now()
      union all
      select min(w.lease_until) from ${webhooks} w
        where w.lease_token is not null and w.lease_until > now() and w.state = 'active'
    ) t)`
}
