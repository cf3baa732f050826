import { sql, type SQL } from 'drizzle-orm'
import { toNumber, toNumberOrNull } from '../db/decode.ts'
import { isOurs } from '../db/fence.ts'
import type { Db } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import type { Clock } from '../ports.ts'
import { trimStep } from './trim-stream.ts'

/** What {@link runRetention} takes. */
export interface RetentionOptions {
  clock: Clock
  /** Stop after so many milliseconds; the rest comes with the next run. Default 10,000. */
  budgetMs?: number
  signal?: AbortSignal
  /** Asked before each statement after the first: false leaves the rest to the next run. */
  mayGoOn?: () => boolean
}

/** What {@link runRetention} returns. */
export interface RetentionReport {
  deleted: number
  /** Milliseconds until something may be old enough; null: nothing will be, as things stand. */
  nextDueInMs: number | null
}

/** Rows a statement deletes, so that none holds locks for long. */
const stepRows = 1_000

/**
 * Removes what the streams' retention no longer keeps, and expired idempotency keys, in small steps that
 * never block a publisher; several workers may run it at once. In a database of another environment
 * nothing goes (W7).
 *
 * Age does not count from an event's own time: that lies before its commit, by as long as the transaction
 * took. Each run notes the horizon of the moment, and only what lay below a horizon of `ageMs` ago, when
 * every reader could have seen it, is old enough.
 */
export async function runRetention(db: Db, options: RetentionOptions): Promise<RetentionReport> {
  const { clock, budgetMs = 10_000, signal, mayGoOn = () => true } = options
  const endAt = clock.now() + budgetMs
  let over = false
  const isOver = (): boolean => (over ||= signal?.aborted === true || clock.now() >= endAt)
  const maySpend = (): boolean => !isOver() && !(over = !mayGoOn())
  let deleted = 0
  let nextDueInMs: number | null = null
  for (const { name, first, bound, dueInMs } of await retentionBounds(db)) {
    if (dueInMs !== null) nextDueInMs = Math.min(nextDueInMs ?? Infinity, dueInMs)
    while (first <= bound && maySpend()) {
      // asked again with each step: a consumer may have come meanwhile, or have gone back
      const step = await trimStep(db, {
        stream: name,
        through: bound,
        rows: stepRows,
        bound: unreadBound(db),
      })
      deleted += step
      if (step < stepRows) break
    }
    if (isOver()) return { deleted, nextDueInMs: 0 }
  }
  while (maySpend() && (await forgetPublishKeys(db)) === stepRows);
  return { deleted, nextDueInMs: isOver() ? 0 : nextDueInMs }
}

/**
 * Whether a run would do something now, as a condition: note a horizon, trim, or forget keys. What is kept
 * because somebody has not read it counts as something.
 */
export function retentionIsDue(db: Db): SQL<boolean> {
  const { streams, events, horizonMarks, publishKeys } = db.tables
  const head = sql`(select max(e."offset") from ${events} e where e.stream_id = s.id)`
  const marked = sql`coalesce((select max(m.horizon) from ${horizonMarks} m where m.stream_id = s.id), 0)`
  return sql`(exists (select 1 from ${publishKeys} k where k.expires_at < now()) or exists (
    select 1 from ${streams} s
    where (s.retain_age_ms is not null and (${head} > ${marked} or exists (
        select 1 from ${horizonMarks} m
        where m.stream_id = s.id and m.at <= clock_timestamp() - s.retain_age_ms * interval '1 millisecond'
          and m.horizon >= (select min(e."offset") from ${events} e where e.stream_id = s.id))))
      or (s.retain_count is not null and exists (
        select 1 from ${events} e where e.stream_id = s.id order by e."offset" desc offset s.retain_count limit 1))))`
}

interface Bound {
  name: string
  /** The oldest event there is; Infinity: none. */
  first: number
  /** Everything up to here may go. */
  bound: number
  /** When the youngest event there is now will be old enough. */
  dueInMs: number | null
}

/** Notes the horizons of the moment, and says up to where each stream with a retention may be trimmed. */
async function retentionBounds(db: Db): Promise<Bound[]> {
  const rows = await runQuery<{
    name: string
    first: string | null
    bound: string | null
    due_in_ms: string | null
  }>(db, boundsStatement(db))
  return rows.map((row) => ({
    name: row.name,
    first: toNumberOrNull(row.first) ?? Infinity,
    bound: toNumber(row.bound ?? 0),
    dueInMs: toNumberOrNull(row.due_in_ms),
  }))
}

function boundsStatement(db: Db): SQL {
  const { streams, events, horizonMarks } = db.tables
  const age = sql`s.retain_age_ms * interval '1 millisecond'`
  return sql`
    with kept as materialized (
      select s.*, h.o_horizon as horizon from ${streams} s
      cross join lateral ${qualified(db, 'horizon')}(s.id) h
      where (s.retain_age_ms is not null or s.retain_count is not null) and ${isOurs(db)}
    ), mature as materialized (
      select s.id, max(m.horizon) as horizon, max(m.at) as at from kept s
      join ${horizonMarks} m on m.stream_id = s.id and m.at <= clock_timestamp() - ${age}
      group by s.id
    ), forgotten as (
      delete from ${horizonMarks} m using (
        select o.stream_id, o.at from ${horizonMarks} o join mature r on o.stream_id = r.id and o.at < r.at
        for update of o skip locked
      ) old
      where m.stream_id = old.stream_id and m.at = old.at
    ), marked as (
      insert into ${horizonMarks} (stream_id, at, horizon)
      select s.id, clock_timestamp(), s.horizon from kept s
      where s.retain_age_ms is not null
        and s.horizon > coalesce((select max(m.horizon) from ${horizonMarks} m where m.stream_id = s.id), 0)
        and exists (
          select 1 from ${events} e where e.stream_id = s.id and e."offset" <= s.horizon
            and e."offset" > coalesce((select max(m.horizon) from ${horizonMarks} m where m.stream_id = s.id), 0))
      on conflict do nothing
      returning stream_id, at
    )
    select s.name,
      (select min(e."offset") from ${events} e where e.stream_id = s.id)::text as first,
      least(
        -- nothing old enough and nothing over the count: nothing, whatever has been read
        coalesce(greatest((select r.horizon from mature r where r.id = s.id), (
          select e."offset" from ${events} e
          where s.retain_count is not null and e.stream_id = s.id and e."offset" <= s.horizon
          order by e."offset" desc offset s.retain_count limit 1)), 0),
        ${unreadBound(db)})::text as bound,
      (select ceil(extract(epoch from min(t.at) + ${age} - clock_timestamp()) * 1000)::bigint::text from (
        select m.at from ${horizonMarks} m where m.stream_id = s.id and m.at > clock_timestamp() - ${age}
        union all select k.at from marked k where k.stream_id = s.id) t) as due_in_ms
    from kept s
    order by s.id`
}

/** Up to where every reader of the stream `s` has everything; null where that does not matter, or nobody reads. */
function unreadBound(db: Db): SQL {
  const { offsets, webhooks, deliveries } = db.tables
  return sql`case when s.keep_unread then (select min(u."offset") from (
      select o."offset" from ${offsets} o where o.stream_id = s.id
      union all select w."offset" from ${webhooks} w where w.stream_id = s.id
      union all select d."offset" - 1 from ${deliveries} d join ${webhooks} w on w.id = d.webhook_id
        where w.stream_id = s.id and d.state <> 'dead') u) end`
}

/** One step; returns how many it forgot. */
async function forgetPublishKeys(db: Db): Promise<number> {
  const { publishKeys } = db.tables
  const [row] = await runQuery<{ forgotten: string }>(
    db,
    sql`with old as (
        select o.stream_id, o.key from ${publishKeys} o where o.expires_at < now() and ${isOurs(db)}
        order by o.expires_at limit ${stepRows}::integer for update skip locked
      ), gone as (
        delete from ${publishKeys} k using old where k.stream_id = old.stream_id and k.key = old.key returning 1
      )
      select count(*)::text as forgotten from gone`,
  )
  return toNumber(row?.forgotten)
}
