import { sql } from 'drizzle-orm'
import { isoText } from '../../db/iso-text.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import { invalidInput } from '../../errors/millrace-error.ts'
import { noWebhook } from '../get-webhook.ts'
import { isWebhookId } from '../webhook-id.ts'

/** A delivery in trouble, or given up. */
export interface DeliveryView {
  offset: number
  state: 'retrying' | 'blocked' | 'dead'
  /** Its key; `''` under stream order; null where it stands outside the order. */
  unit: string | null
  /** Null when the event was trimmed. */
  type: string | null
  attempts: number
  /** ISO 8601; null unless retrying. */
  dueAt: string | null
  lastStatus: number | null
  lastError: string | null
  lastAnswer: string | null
  updatedAt: string
}

/** A line of the attempt log. Events that succeed at once leave none. */
export interface AttemptView {
  id: number
  offset: number
  attempt: number
  at: string
  durationMs: number
  outcome: 'delivered' | 'retry' | 'dead' | 'disabled'
  status: number | null
  error: string | null
  answer: string | null
}

/** What the lists take. */
export interface ListRange {
  /** Where the last page ended: its `next`. */
  cursor?: number
  /** At most so many: 1 to 100, default 20. */
  limit?: number
}

/**
 * The deliveries of a webhook that are in trouble, by offset. One statement.
 *
 * @throws NOT_FOUND, INVALID_INPUT
 */
export async function listDeliveries(
  db: Db,
  id: string,
  range: ListRange & { state?: string } = {},
): Promise<{ deliveries: DeliveryView[]; next: number | null }> {
  const { cursor = 0, state } = range
  const limit = limitOf(range)
  if (state !== undefined && !['retrying', 'blocked', 'dead'].includes(state)) {
    throw invalidInput('state', 'must be retrying, blocked or dead')
  }
  const { webhooks, deliveries, events } = db.tables
  const rows = await page<DeliveryView>(
    db,
    id,
    sql`select json_build_object(
        'offset', d."offset", 'state', d.state, 'unit', d.unit, 'type', e.type, 'attempts', d.attempts,
        'dueAt', ${iso('d', 'due_at')}, 'lastStatus', d.last_status, 'lastError', d.last_error,
        'lastAnswer', d.last_answer, 'updatedAt', ${iso('d', 'updated_at')}) as line
      from ${deliveries} d
      join ${webhooks} w on w.id = d.webhook_id
      left join ${events} e on e.stream_id = w.stream_id and e."offset" = d."offset"
      where d.webhook_id = ${id}::text and d."offset" > ${cursor}::bigint
        ${state === undefined ? sql`` : sql`and d.state = ${state}::text`}
      order by d."offset" limit ${limit + 1}::integer`,
  )
  const found = rows.slice(0, limit)
  return { deliveries: found, next: rows.length > limit ? (found.at(-1)?.offset ?? null) : null }
}

/**
 * The attempt log of a webhook, the newest first. One statement.
 *
 * @throws NOT_FOUND, INVALID_INPUT
 */
export async function listAttempts(
  db: Db,
  id: string,
  range: ListRange & { outcome?: string; offset?: number } = {},
): Promise<{ attempts: AttemptView[]; next: number | null }> {
  const { cursor = Number.MAX_SAFE_INTEGER, outcome, offset } = range
  const limit = limitOf(range)
  if (outcome !== undefined && !['delivered', 'retry', 'dead', 'disabled'].includes(outcome)) {
    throw invalidInput('outcome', 'must be delivered, retry, dead or disabled')
  }
  const rows = await page<AttemptView>(
    db,
    id,
    sql`select json_build_object(
        'id', a.id, 'offset', a."offset", 'attempt', a.attempt, 'at', ${iso('a', 'at')},
        'durationMs', a.duration_ms, 'outcome', a.outcome, 'status', a.status, 'error', a.error,
        'answer', a.answer) as line
      from ${db.tables.attempts} a
      where a.webhook_id = ${id}::text and a.id < ${cursor}::bigint
        ${outcome === undefined ? sql`` : sql`and a.outcome = ${outcome}::text`}
        ${offset === undefined ? sql`` : sql`and a."offset" = ${offset}::bigint`}
      order by a.id desc limit ${limit + 1}::integer`,
  )
  const found = rows.slice(0, limit)
  return { attempts: found, next: rows.length > limit ? (found.at(-1)?.id ?? null) : null }
}

function limitOf({ limit = 20 }: ListRange): number {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 100)
    throw invalidInput('limit', 'must be 1 to 100')
  return limit
}

async function page<Line>(db: Db, id: string, lines: ReturnType<typeof sql>): Promise<Line[]> {
  if (!isWebhookId(id)) throw noWebhook()
  const [row] = await runQuery<{ lines: string }>(
    db,
    sql`select (select coalesce(json_agg(l.line), '[]') from (${lines}) l)::text as lines
      from ${db.tables.webhooks} w where w.id = ${id}::text`,
  )
  if (row === undefined) throw noWebhook()
  return JSON.parse(row.lines) as Line[]
}

function iso(alias: string, column: string): ReturnType<typeof sql> {
  return isoText(sql`${sql.identifier(alias)}.${sql.identifier(column)}`)
}
