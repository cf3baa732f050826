import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../../db/array-literal.ts'
import { toNumberOrNull } from '../../db/decode.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import { secretsAreReadable } from '../readable-secrets.ts'
import { webhookJson } from './webhook-json.ts'

/** Which webhooks a claim looks at. */
export type ClaimScope =
  | { kind: 'all' }
  /** Those with a due retry, and those of workers that died. */
  | { kind: 'due' }
  /** Those of the streams, and those that are due. */
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
  /** The master keys that are known here, default none; what is sealed under another is left to whoever knows it. */
  keyIds?: readonly string[]
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
  /** The stream's last event as the claim saw it; null: it did not look. Above the horizon nobody reads yet. */
  head: number | null
  saturated: boolean
  /** Milliseconds until its earliest retry is due, 0 and less: now; null: it has none. */
  dueInMs: number | null
  /** Every secret that signs, the current one first. */
  secrets: { id: string; sealed: string }[]
  /** Milliseconds until the first of them no longer does; null: none has an end. */
  secretsForMs: number | null
  /** Counts the claims of the webhook, and the changes that end what a claim brought. */
  fence: number
  /** Deliveries beyond the offset that have a row, dead ones too: not to be taken from the stream again. */
  recorded: number[]
  /** Ordering units in which something is retrying or blocked. */
  units: string[]
  /** Retrying deliveries that belong to no unit, counted up to 1000. */
  loose: number
}

/** What {@link claimWebhooks} returns. */
export interface Claim {
  webhooks: ClaimedWebhook[]
  /** Some of those that have work, and are not handed out, since a secret of theirs cannot be opened here. */
  unreadable: string[]
  /** Milliseconds until something not claimed now may be: a retry falls due, another's lease ends. Null: nothing. */
  nextDueInMs: number | null
  /** How many active webhooks there are of the streams asked for, whoever works on them; empty for other scopes. */
  activeOf: Map<number, number>
  installationId: string
  /** The environment the database belongs to. */
  environment: string | null
}

/** So many that cannot be opened are named: they are for the log, and have one cause. */
const unreadableTold = 20

/** What others were just working on, or changing, is looked at again so much later. */
const missedMs = 1_000

/**
 * Leases active webhooks that have work and that nobody else holds, quiet ones before busy ones. One
 * statement. Events above the horizon count as work here; whoever then reads finds out.
 */
export async function claimWebhooks(db: Db, request: ClaimRequest): Promise<Claim> {
  const [row] = await runQuery<ClaimRow>(db, claimStatement(db, request))
  if (row === undefined) throw new Error('the claim returned no row')
  return {
    webhooks: JSON.parse(row.webhooks) as ClaimedWebhook[],
    unreadable: JSON.parse(row.unreadable) as string[],
    nextDueInMs: toNumberOrNull(row.next_due_in_ms),
    activeOf: new Map(JSON.parse(row.active_of) as [number, number][]),
    installationId: row.installation_id,
    environment: row.environment,
  }
}

interface ClaimRow {
  webhooks: string
  unreadable: string
  next_due_in_ms: string | null
  active_of: string
  installation_id: string
  environment: string | null
}

/** Of a webhook `w` and the head `h` of its stream. */
const isClaimable = sql`w.state = 'active'
  and (w.lease_until is null or w.lease_until <= now())
  and (w.due_at <= now() or ((not w.saturated or w.due_at is null) and h.head > w."offset"))`

/** Whether a claim of all would bring something, as a condition. */
export function webhooksAreDue(db: Db): SQL<boolean> {
  return sql`exists (
    select 1 from ${db.tables.webhooks} w left join (${streamHeads(db, { kind: 'all' })}) h on h.id = w.stream_id
    where ${isClaimable})`
}

function claimStatement(db: Db, request: ClaimRequest): SQL {
  const { webhooks, streams, installation } = db.tables
  return sql`
    with heads as materialized (${streamHeads(db, request.scope)}),
    claimable as materialized (
      select w.id, w.lease_fence, w.lease_token, h.head,
        ${secretsAreReadable(db, sql`w.id`, request.keyIds ?? [])} as readable
      from ${webhooks} w left join heads h on h.id = w.stream_id
      where ${isClaimable}
        and ${inScope(request.scope)}
        and exists (
          select 1 from ${installation} i where i.environment is not distinct from ${request.environment}::text)
    ), free as materialized (
      select c.* from claimable c where c.readable order by c.lease_fence, c.id limit ${request.limit}
    ), candidate as (${unchanged(db)}), leased as (
      update ${webhooks} w
      set lease_token = ${request.token}::uuid,
          lease_until = clock_timestamp() + ${request.leaseMs}::integer * interval '1 millisecond',
          lease_fence = w.lease_fence + 1
      from candidate c where w.id = c.id
      returning w.*, c.head
    )
    select
      (select coalesce(json_agg(${webhookJson(db)}), '[]') from leased l join ${streams} s on s.id = l.stream_id)::text
        as webhooks,
      (select coalesce(json_agg(c.id), '[]') from (
        select c.id from claimable c where not c.readable order by c.id limit ${unreadableTold}) c)::text as unreadable,
      least(${nextDueInMs(db)}, case when (select count(*) from free) > (select count(*) from leased)
        then ${missedMs}::bigint end)::text as next_due_in_ms,
      ${activeOf(db, request.scope)} as active_of,
      i.id::text as installation_id,
      i.environment
    from ${installation} i`
}

/**
 * Locks the free ones, but for those that another worker has had since this statement began: what the
 * statement knows of their deliveries is older than what that worker did, and would break their order (W3).
 */
function unchanged(db: Db): SQL {
  return sql`
    select w.id, f.head from free f
    join ${db.tables.webhooks} w on w.id = f.id and w.lease_fence = f.lease_fence
      and w.lease_token is not distinct from f.lease_token
    where w.state = 'active' and (w.lease_until is null or w.lease_until <= now())
    for update of w skip locked`
}

function streamHeads(db: Db, scope: ClaimScope): SQL {
  const { streams, events } = db.tables
  return sql`select s.id, (select max(e."offset") from ${events} e where e.stream_id = s.id) as head
    from ${streams} s where ${wantedStreams(db, scope)}`
}

function wantedStreams(db: Db, scope: ClaimScope): SQL {
  const { webhooks } = db.tables
  const abandoned = sql`s.id in (
    select w.stream_id from ${webhooks} w where w.lease_token is not null and w.lease_until <= now())`
  switch (scope.kind) {
    case 'all':
      return sql`true`
    case 'due':
      return abandoned
    case 'streams':
      return sql`(s.id = any (${bigintArray(scope.streamIds)}) or ${abandoned})`
    case 'webhooks':
      return sql`s.id in (select w.stream_id from ${webhooks} w where w.id = any (${textArray(scope.ids)}))`
  }
}

/** A lease that ran out is due, too: its holder died, and what it left waits for no wake. */
function inScope(scope: ClaimScope): SQL {
  const due = sql`(w.due_at <= now() or w.lease_token is not null)`
  switch (scope.kind) {
    case 'all':
      return sql`true`
    case 'due':
      return due
    case 'streams':
      return sql`(w.stream_id = any (${bigintArray(scope.streamIds)}) or ${due})`
    case 'webhooks':
      return sql`w.id = any (${textArray(scope.ids)})`
  }
}

function activeOf(db: Db, scope: ClaimScope): SQL {
  if (scope.kind !== 'streams') return sql`'[]'::text`
  return sql`(
    select coalesce(json_agg(json_build_array(a.stream_id, a.count)), '[]') from (
      select w.stream_id, count(*) as count from ${db.tables.webhooks} w
      where w.stream_id = any (${bigintArray(scope.streamIds)}) and w.state = 'active'
      group by w.stream_id) a)::text`
}

function nextDueInMs(db: Db): SQL {
  const { webhooks } = db.tables
  return sql`(
    select ceil(extract(epoch from min(t.at) - clock_timestamp()) * 1000)::bigint from (
      select min(w.due_at) as at from ${webhooks} w where w.state = 'active' and w.due_at > now()
      union all
      select min(w.lease_until) from ${webhooks} w
        where w.lease_token is not null and w.lease_until > now() and w.state = 'active'
    ) t)`
}
