import { sql, type SQL } from 'drizzle-orm'
import { textArray } from '../../db/array-literal.ts'
import { toDate, toNumber } from '../../db/decode.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import type { StoredEvent } from '../../streams/event.ts'

/** A delivery in trouble, with its event. */
export interface LoadedDelivery {
  webhookId: string
  offset: number
  unit: string | null
  /** Attempts made so far. */
  attempts: number
  /** Milliseconds until it is due; 0 and less: now. */
  dueInMs: number
  /** Null when the event was trimmed from the stream. */
  event: StoredEvent | null
}

/** So many deliveries of a webhook are loaded at once; the rest follows when they are through. */
const loadLimit = 64

/** The due retries of some webhooks, the longest due first. One statement for all of them. */
export async function loadDueDeliveries(db: Db, webhookIds: readonly string[]): Promise<LoadedDelivery[]> {
  const { deliveries } = db.tables
  return load(
    db,
    sql`unnest(${textArray(webhookIds)}) as wanted (id)
      cross join lateral (
        select d.* from ${deliveries} d
        where d.webhook_id = wanted.id and d.state = 'retrying' and d.due_at <= clock_timestamp()
        order by d.due_at, d."offset" limit ${loadLimit}
      ) d`,
  )
}

/** What stands in some ordering units of a webhook, in order: their heads first. One statement for all of them. */
export async function loadUnits(
  db: Db,
  webhookId: string,
  units: readonly string[],
): Promise<LoadedDelivery[]> {
  const { deliveries } = db.tables
  return load(
    db,
    sql`unnest(${textArray(units)}) as wanted (unit)
      cross join lateral (
        select d.* from ${deliveries} d
        where d.webhook_id = ${webhookId} and d.unit = wanted.unit and d.state <> 'dead'
        order by d."offset" limit ${loadLimit}
      ) d`,
  )
}

async function load(db: Db, from: SQL): Promise<LoadedDelivery[]> {
  const { webhooks, events } = db.tables
  const rows = await runQuery<LoadedRow>(
    db,
    sql`select d.webhook_id, d."offset"::text, d.unit, d.attempts,
        coalesce(extract(epoch from d.due_at - clock_timestamp()) * 1000, 0)::bigint::text as due_in_ms,
        e.type, e.key, e.data::text as data, e.headers::text as headers, e.published_at
      from ${from}
      join ${webhooks} w on w.id = d.webhook_id
      left join ${events} e on e.stream_id = w.stream_id and e."offset" = d."offset"
      order by d.webhook_id, d."offset"`,
  )
  return rows.map(toDelivery)
}

interface LoadedRow {
  webhook_id: string
  offset: string
  unit: string | null
  attempts: number
  due_in_ms: string
  type: string | null
  key: string | null
  data: string
  headers: string | null
  published_at: unknown
}

function toDelivery(row: LoadedRow): LoadedDelivery {
  const offset = toNumber(row.offset)
  const event =
    row.type === null
      ? null
      : {
          offset,
          type: row.type,
          key: row.key,
          dataText: row.data,
          headers: row.headers === null ? null : (JSON.parse(row.headers) as Record<string, string>),
          publishedAt: toDate(row.published_at),
        }
  return {
    webhookId: row.webhook_id,
    offset,
    unit: row.unit,
    attempts: row.attempts,
    dueInMs: toNumber(row.due_in_ms),
    event,
  }
}
