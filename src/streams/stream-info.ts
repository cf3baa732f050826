import { sql, type SQL } from 'drizzle-orm'
import { isoText } from '../db/iso-text.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { assertReadableName } from '../schema/names.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { listHorizonHolders, type HorizonHolder } from './horizon-holders.ts'

/** How far a consumer of a stream is. */
export interface ConsumerInfo {
  /** The consumer's name, or the webhook's id. */
  name: string
  kind: 'consumer' | 'webhook'
  offset: number
  /** Events after the offset and up to the horizon, counted up to 10,000. */
  lag: number
  /** ISO 8601. */
  updatedAt: string
}

/** How a stream stands. */
export interface StreamInfo {
  name: string
  createdAt: string
  /** The lowest offset that is there; null: the stream is empty. */
  first: number | null
  /** The highest offset up to the horizon. */
  last: number | null
  /** Up to here every publish is decided. */
  horizon: number
  retention: Retention
  consumers: ConsumerInfo[]
  /** The open transactions that hold the horizon back, the oldest first. */
  heldBy: HorizonHolder[]
}

/** What a stream forgets, and when. */
export interface Retention {
  /** Events may go once readers could have seen them for so long; null: never by age. */
  ageMs: number | null
  /** Only so many newest events are kept; null: all. */
  count: number | null
  /** Nothing goes before every consumer and webhook has it. */
  keepUnread: boolean
}

/** A count stops here: what lags further behind is simply far behind. */
const maxLag = 10_000

/**
 * How a stream stands: its ends, its horizon and who holds it back, who reads it and how far behind they are.
 * Null when there is no such stream.
 *
 * @throws INVALID_NAME
 */
export async function streamInfo(db: Db, stream: string, options: TxOption = {}): Promise<StreamInfo | null> {
  assertReadableName('stream', stream)
  const on = executorFor(db, options)
  const [row] = await runQuery<{ info: string }>(
    on,
    sql`select ${infoJson(on)}::text as info from ${on.tables.streams} s
      cross join lateral ${qualified(on, 'horizon')}(s.id) h
      where s.name = ${stream}::text`,
  )
  if (row === undefined) return null
  const heldBy = await listHorizonHolders(on, stream)
  return { ...(JSON.parse(row.info) as Omit<StreamInfo, 'heldBy'>), heldBy }
}

/** A page of streams. */
export interface StreamList {
  streams: Omit<StreamInfo, 'consumers' | 'heldBy'>[]
  /** Pass it as `cursor` to read on; null: that was all. */
  next: string | null
}

/**
 * The streams in the order of their names.
 *
 * @throws INVALID_INPUT when the limit is not 1 to 100
 */
export async function listStreams(
  db: Db,
  { cursor = '', limit = 50, prefix = '' }: { cursor?: string; limit?: number; prefix?: string } = {},
): Promise<StreamList> {
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw invalidInput('limit', 'must be 1 to 100')
  const rows = await runQuery<{ info: string }>(
    db,
    sql`select ${summaryJson(db)}::text as info from (
        select * from ${db.tables.streams} t
        where t.name collate "C" > ${cursor}::text collate "C" and starts_with(t.name, ${prefix}::text)
        order by t.name collate "C" limit ${limit + 1}::integer
      ) s
      cross join lateral ${qualified(db, 'horizon')}(s.id) h
      order by s.name collate "C"`,
  )
  const streams = rows.slice(0, limit).map(({ info }) => JSON.parse(info) as StreamList['streams'][number])
  return { streams, next: rows.length > limit ? (streams.at(-1)?.name ?? null) : null }
}

function summaryJson(on: Executor): SQL {
  return sql`json_build_object(${summaryPairs(on)})`
}

function infoJson(on: Executor): SQL {
  return sql`json_build_object(${summaryPairs(on)}, 'consumers', ${consumersJson(on)})`
}

function summaryPairs(on: Executor): SQL {
  const { events } = on.tables
  const edge = (which: SQL): SQL =>
    sql`(select ${which}(e."offset") from ${events} e where e.stream_id = s.id and e."offset" <= h.o_horizon)`
  return sql`
    'name', s.name,
    'createdAt', ${isoText(sql`s.created_at`)},
    'first', ${edge(sql`min`)},
    'last', ${edge(sql`max`)},
    'horizon', h.o_horizon,
    'retention', json_build_object(
      'ageMs', s.retain_age_ms, 'count', s.retain_count, 'keepUnread', s.keep_unread)`
}

function consumersJson(on: Executor): SQL {
  const { offsets, webhooks, events } = on.tables
  return sql`(
    select coalesce(json_agg(json_build_object(
      'name', c.name, 'kind', c.kind, 'offset', c."offset", 'updatedAt', ${isoText(sql`c.updated_at`)},
      'lag', (select count(*) from (
        select 1 from ${events} e
        where e.stream_id = s.id and e."offset" > c."offset" and e."offset" <= h.o_horizon limit ${maxLag}
      ) behind)) order by c.kind, c.name), '[]')
    from (
      select o.consumer as name, 'consumer' as kind, o."offset", o.updated_at from ${offsets} o
        where o.stream_id = s.id
      union all
      select w.id, 'webhook', w."offset", w.updated_at from ${webhooks} w where w.stream_id = s.id
    ) c)`
}
