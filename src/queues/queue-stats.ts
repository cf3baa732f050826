import { sql } from 'drizzle-orm'
import { toDate, toDateOrNull, toNumber, toNumberOrNull } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { assertReadableName } from '../schema/names.ts'

/** A queue and what is in it. */
export interface QueueStats {
  id: number
  name: string
  createdAt: Date
  /** How long finished messages are kept; null: not at all. */
  retainFinishedMs: number | null
  /** To be claimed now. */
  ready: number
  /** Waiting for their time: sent with a delay, or to be tried again. */
  delayed: number
  /** Behind another message of their key. */
  blocked: number
  leased: number
  /** Finished and still kept. */
  done: number
  dead: number
  /** When the oldest of the ready ones was sent; null: there is none. */
  oldestReadyAt: Date | null
}

/** Which queues {@link listQueues} returns. */
export interface QueuePage extends TxOption {
  /** Only names after this one, by code point. */
  after?: string
  /** At most so many: default 100, at most 1000. */
  limit?: number
}

/** Queues by name, with what is in them. It counts: not for a hot path. */
export async function listQueues(db: Db, options: QueuePage = {}): Promise<QueueStats[]> {
  const limit = Math.min(options.limit ?? 100, 1000)
  if (!(limit > 0)) return []
  return selectStats(db, options, {
    after: options.after ?? '',
    name: null,
    limit: Math.floor(limit),
  })
}

/**
 * One queue with what is in it, or undefined if there is none of that name. It counts: not for a hot path.
 *
 * @throws INVALID_NAME
 */
export async function getQueueStats(
  db: Db,
  queue: string,
  options: TxOption = {},
): Promise<QueueStats | undefined> {
  assertReadableName('queue', queue)
  const [stats] = await selectStats(db, options, { after: '', name: queue, limit: 1 })
  return stats
}

interface Selection {
  after: string
  name: string | null
  limit: number
}

/** Each count has the partial index of its state. */
async function selectStats(db: Db, options: TxOption, selection: Selection): Promise<QueueStats[]> {
  const on = executorFor(db, options)
  const { queues, messages, deadLetters } = on.tables
  const { after, name, limit } = selection
  const rows = await runQuery<StatsRow>(
    on,
    sql`select q.id, q.name, q.created_at, q.retain_finished_ms::text,
        r.ready::text, r.oldest, d.delayed::text, d.leased::text,
        (select count(*) from ${messages} m
          where m.queue_id = q.id and m.key is not null and m.state <> 'done' and m.state = 'blocked')::text as blocked,
        (select count(*) from ${messages} m where m.queue_id = q.id and m.state = 'done')::text as done,
        (select count(*) from ${deadLetters} l where l.queue_id = q.id)::text as dead
      from ${queues} q
      cross join lateral (
        select count(*) as ready, min(m.sent_at) as oldest from ${messages} m
          where m.queue_id = q.id and m.state = 'ready'
      ) r
      cross join lateral (
        select count(*) filter (where m.state = 'delayed') as delayed, count(*) filter (where m.state = 'leased') as leased
          from ${messages} m where m.queue_id = q.id and m.state in ('delayed', 'leased')
      ) d
      where q.name collate "C" > ${after}::text and (${name}::text is null or q.name = ${name}::text)
      order by q.name collate "C"
      limit ${limit}::integer`,
  )
  return rows.map(toStats)
}

interface StatsRow {
  id: number
  name: string
  created_at: unknown
  retain_finished_ms: string | null
  ready: string
  oldest: unknown
  delayed: string
  leased: string
  blocked: string
  done: string
  dead: string
}

function toStats(row: StatsRow): QueueStats {
  return {
    id: row.id,
    name: row.name,
    createdAt: toDate(row.created_at),
    retainFinishedMs: toNumberOrNull(row.retain_finished_ms),
    ready: toNumber(row.ready),
    delayed: toNumber(row.delayed),
    blocked: toNumber(row.blocked),
    leased: toNumber(row.leased),
    done: toNumber(row.done),
    dead: toNumber(row.dead),
    oldestReadyAt: toDateOrNull(row.oldest),
  }
}
