import { sql, type SQL } from 'drizzle-orm'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import { announced, wakeOfAnnounced } from '../operational-events.ts'
import { flushNotices } from './flush-notices.ts'

/** What one leased webhook wants written. */
export interface LaneFlush {
  webhookId: string
  token: string
  /** The new low-water mark. */
  offset: number
  /** Give the lease back, otherwise renew it. */
  release: boolean
  saturated: boolean
  /** Since the last flush an attempt succeeded. */
  succeeded: boolean
  /** The last attempt failed, and none has succeeded since. */
  failed: boolean
  /** Disable the webhook, for this reason. */
  disable: string | null
  rows: DeliveryRow[]
  /** Units whose head is gone: the next blocked delivery of each becomes the head, due at once. */
  promote: string[]
  log: AttemptRow[]
}

/** How a row of `deliveries` shall be. */
export interface DeliveryRow {
  offset: number
  unit: string | null
  state: 'gone' | 'retrying' | 'blocked' | 'dead'
  attempts: number
  delayMs: number
  status: number | null
  error: string | null
  answer: string | null
}

/** A line of the attempt log. */
export interface AttemptRow {
  offset: number
  attempt: number
  outcome: 'delivered' | 'retry' | 'dead' | 'disabled'
  durationMs: number
  status: number | null
  error: string | null
  answer: string | null
}

/** What the database says of a webhook whose lease still held. */
export interface FlushedLane {
  webhookId: string
  state: 'active' | 'paused' | 'disabled'
  /** Milliseconds until its earliest retry is due; null: it has none. */
  dueInMs: number | null
  /** As in the claim, unless what it brought was changed since. */
  fence: number
}

/** What became of a flush. */
export interface Flushed {
  /** The webhooks whose lease still held: theirs is written. */
  held: FlushedLane[]
  /** Webhooks that someone else is changing at this moment: nothing of theirs is written yet, flush it again. */
  busy: string[]
}

/** A webhook on which every attempt has failed for so long is disabled: 5 days. */
const failingLimit = sql.raw(`interval '5 days'`)

/**
 * Writes the outcomes of many webhooks in one statement: offsets, deliveries in trouble, attempt log,
 * leases; what an operator should know of it goes to the operational stream. Each webhook's part is guarded by its lease token, so that a worker that lost its lease
 * changes nothing (W5): whoever is neither `held` nor `busy` lost it. It waits for no row lock, so that
 * a transaction that sits on one webhook delays no other (W4).
 */
export async function flushOutcomes(db: Db, lanes: readonly LaneFlush[], leaseMs: number): Promise<Flushed> {
  const [row] = await runQuery<{ held: string; busy: string }>(db, flushStatement(db, lanes, leaseMs))
  return {
    held: JSON.parse(row?.held ?? '[]') as FlushedLane[],
    busy: JSON.parse(row?.busy ?? '[]') as string[],
  }
}

function flushStatement(db: Db, lanes: readonly LaneFlush[], leaseMs: number): SQL {
  const { webhooks } = db.tables
  return sql`
    with lane as (
      select * from json_to_recordset(${laneJson(lanes)}::text::json) as l (
        id text, token uuid, "offset" bigint, release boolean, saturated boolean,
        succeeded boolean, failed boolean, disable text)
    ), seen as materialized (
      select w.id, w.lease_token as token, w.xmin as version from ${webhooks} w
      join lane l on l.id = w.id and l.token = w.lease_token
    ), ${heldRows(db)}, wanted as materialized (
      select r.* from json_to_recordset(${rowJson(lanes)}::text::json) as r (
        id text, "offset" bigint, unit text, state text, attempts integer, delay bigint,
        status integer, error text, answer text)
      join held h on h.id = r.id
    ), ${newHeads(db, lanes)},
    ${writeDeliveries(db)},
    ${promoteHeads(db)},
    ${logAttempts(db, lanes)},
    ${updateWebhooks(db, leaseMs)},
    ${announced(db, flushNotices(db))}
    select
      (select coalesce(json_agg(json_build_object('webhookId', f.id, 'state', f.state,
        'fence', f.lease_fence, 'dueInMs', ceil(extract(epoch from f.due_at - clock_timestamp()) * 1000))), '[]') from flushed f)::text
        as held,
      (select coalesce(json_agg(w.id), '[]') from ${webhooks} w
        join lane l on l.id = w.id and l.token = w.lease_token
        where w.id not in (select h.id from held h))::text as busy,
      ${wakeOfAnnounced(db)} as woken`
}

/**
 * Whose lease holds, and whose row is still as this statement's snapshot shows it. A flush whose answer was
 * lost may have gone through in between; then the snapshot is older than what that one wrote, and what
 * became dead would be told twice. Such a one counts as busy.
 */
function heldRows(db: Db): SQL {
  return sql`held as materialized (
      select w.id, w.stream_id, w.state, w.failing_since from ${db.tables.webhooks} w
      join seen s on s.id = w.id and s.token = w.lease_token and s.version = w.xmin
      order by w.id for update of w skip locked
    )`
}

/**
 * The new head of each unit whose head is gone: the lowest that is left of it, be it in the table or among
 * the rows of this flush. If it is not blocked, an earlier flush has seen to it already.
 */
function newHeads(db: Db, lanes: readonly LaneFlush[]): SQL {
  const { deliveries } = db.tables
  const units = lanes.flatMap((lane) => lane.promote.map((unit) => ({ id: lane.webhookId, unit })))
  return sql`head as materialized (
      select p.id, least(
        (select min(d."offset") from ${deliveries} d
          where d.webhook_id = p.id and d.unit = p.unit and d.state <> 'dead'
            and not exists (select 1 from wanted r where r.id = d.webhook_id and r."offset" = d."offset")),
        (select min(r."offset") from wanted r
          where r.id = p.id and r.unit = p.unit and r.state in ('retrying', 'blocked'))) as "offset"
      from json_to_recordset(${JSON.stringify(units)}::text::json) as p (id text, unit text)
      join held h on h.id = p.id
    ), changed as materialized (
      select r.id, r."offset", r.unit, r.attempts, r.status, r.error, r.answer,
        case when r.state = 'blocked' and h.id is not null then 'retrying' else r.state end as state, r.delay
      from wanted r left join head h on h.id = r.id and h."offset" = r."offset"
    )`
}

function writeDeliveries(db: Db): SQL {
  const { deliveries } = db.tables
  return sql`gone as (
      delete from ${deliveries} d using changed r
      where d.webhook_id = r.id and d."offset" = r."offset" and r.state = 'gone'
    ), written as (
      insert into ${deliveries} as d (
        webhook_id, "offset", unit, state, attempts, due_at, last_status, last_error, last_answer)
      select r.id, r."offset", r.unit, r.state, r.attempts,
        case when r.state = 'retrying' then clock_timestamp() + r.delay * interval '1 millisecond' end,
        r.status, r.error, r.answer
      from changed r where r.state <> 'gone'
      on conflict (webhook_id, "offset") do update set
        state = excluded.state, attempts = excluded.attempts, due_at = excluded.due_at,
        last_status = excluded.last_status, last_error = excluded.last_error,
        last_answer = excluded.last_answer, updated_at = clock_timestamp()
    )`
}

/** Which heads stand in the table already is told apart first: a sub-select on the update could not be rechecked. */
function promoteHeads(db: Db): SQL {
  const { deliveries } = db.tables
  return sql`promotion as materialized (
      select d.webhook_id, d."offset" from ${deliveries} d
      join head h on h.id = d.webhook_id and h."offset" = d."offset"
      where d.state = 'blocked'
        and not exists (select 1 from changed r where r.id = d.webhook_id and r."offset" = d."offset")
    ), promoted as (
      update ${deliveries} d
      set state = 'retrying', due_at = clock_timestamp(), updated_at = clock_timestamp()
      from promotion p
      where d.webhook_id = p.webhook_id and d."offset" = p."offset"
    )`
}

function logAttempts(db: Db, lanes: readonly LaneFlush[]): SQL {
  const log = lanes.flatMap((lane) =>
    lane.log.map((line) => ({ id: lane.webhookId, ...line, ...cleanTexts(line) })),
  )
  return sql`logged as (
      insert into ${db.tables.attempts} (
        webhook_id, "offset", attempt, at, duration_ms, outcome, status, error, answer)
      select a.id, a."offset", a.attempt, clock_timestamp(), a."durationMs", a.outcome, a.status, a.error, a.answer
      from json_to_recordset(${JSON.stringify(log)}::text::json) as a (
        id text, "offset" bigint, attempt integer, "durationMs" integer, outcome text,
        status integer, error text, answer text)
      join held h on h.id = a.id
    )`
}

/** `due_at` is the earliest due time after this statement, whose own changes its snapshot does not show. */
function updateWebhooks(db: Db, leaseMs: number): SQL {
  const { webhooks, deliveries } = db.tables
  return sql`flushed as (
      update ${webhooks} w set
        "offset" = greatest(w."offset", l."offset"),
        saturated = l.saturated,
        lease_token = case when l.release then null else w.lease_token end,
        lease_until = case when l.release then null
          else clock_timestamp() + ${leaseMs}::integer * interval '1 millisecond' end,
        due_at = least(
          (select min(d.due_at) from ${deliveries} d
            where d.webhook_id = w.id and d.state = 'retrying'
              and not exists (select 1 from changed r where r.id = d.webhook_id and r."offset" = d."offset")),
          (select min(clock_timestamp() + r.delay * interval '1 millisecond') from changed r
            where r.id = w.id and r.state = 'retrying'),
          (select clock_timestamp() where w.id in (select p.webhook_id from promotion p))),
        failing_since = case
          when l.succeeded and not l.failed then null
          when l.succeeded then clock_timestamp()
          when l.failed then coalesce(w.failing_since, clock_timestamp())
          else w.failing_since end,
        disable_after = case
          -- whoever enables it again gives it its five days anew
          when ${disabled()} or (l.succeeded and not l.failed) then null
          when l.succeeded then clock_timestamp() + ${failingLimit}
          when l.failed then coalesce(w.disable_after, clock_timestamp() + ${failingLimit})
          else w.disable_after end,
        state = case when w.state = 'active' and ${disabled()} then 'disabled' else w.state end,
        state_reason = case when w.state <> 'active' then w.state_reason else coalesce(l.disable,
          case when ${disabled()} then 'every attempt has failed for 5 days' end, w.state_reason) end,
        updated_at = case when w.state = 'active' and ${disabled()} then clock_timestamp() else w.updated_at end
      from lane l join held h on h.id = l.id
      where w.id = l.id
      returning w.id, w.state, w.state_reason, w.due_at, w.lease_fence
    )`
}

function disabled(): SQL {
  return sql`(l.disable is not null
    or (l.failed and not l.succeeded and w.disable_after < clock_timestamp()))`
}

function laneJson(lanes: readonly LaneFlush[]): string {
  return JSON.stringify(
    lanes.map(({ webhookId, token, offset, release, saturated, succeeded, failed, disable }) => {
      return { id: webhookId, token, offset, release, saturated, succeeded, failed, disable: clean(disable) }
    }),
  )
}

function rowJson(lanes: readonly LaneFlush[]): string {
  return JSON.stringify(
    lanes.flatMap((lane) =>
      lane.rows.map(({ delayMs, ...row }) => ({
        id: lane.webhookId,
        delay: Math.round(delayMs),
        ...row,
        ...cleanTexts(row),
      })),
    ),
  )
}

function cleanTexts({ error, answer }: Pick<DeliveryRow, 'error' | 'answer'>) {
  return { error: clean(error), answer: clean(answer) }
}

/** Postgres refuses NUL and half surrogate pairs, and one refusal would hold up the flush of all (W4). */
function clean(text: string | null): string | null {
  return text === null ? null : text.toWellFormed().replaceAll('\0', '')
}
