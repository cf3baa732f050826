import { sql } from 'drizzle-orm'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertReadableName } from '../schema/names.ts'
import { isWebhookId } from './webhook-id.ts'
import { headsCte, toWebhookView, viewSelect, type WebhookView } from './webhook-view.ts'

const defaultLimit = 20
/** Each one counts its lag and its troubles. */
const maxLimit = 100

/** What {@link listWebhooks} takes. */
export interface WebhookListRange {
  /** Where the last page ended: its `next`. */
  cursor?: string
  /** At most so many: 1 to 100, default 20. */
  limit?: number
  /** Only the webhooks of this stream. */
  stream?: string
}

/** What {@link listWebhooks} returns. */
export interface WebhookPage {
  webhooks: WebhookView[]
  /** Pass it as `cursor` for the next page; null: this was the last. */
  next: string | null
}

/**
 * Lists webhooks by id, a page at a time. Who follows `next` sees each webhook that exists throughout
 * exactly once. One statement.
 *
 * @throws INVALID_INPUT, INVALID_NAME
 */
export async function listWebhooks(db: Db, range: WebhookListRange = {}): Promise<WebhookPage> {
  const { cursor = '', limit = defaultLimit, stream } = range
  if (cursor !== '' && !isWebhookId(cursor)) throw invalidInput('cursor', 'must be the `next` of a page')
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > maxLimit) {
    throw invalidInput('limit', `must be a whole number from 1 to ${maxLimit}`)
  }
  if (stream !== undefined) assertReadableName('stream', stream)
  const { webhooks, streams } = db.tables
  const rows = await runQuery<{ view: string }>(
    db,
    sql`with page as (
        select w.*, s.name as stream_name from ${webhooks} w join ${streams} s on s.id = w.stream_id
        where w.id > ${cursor}::text ${stream === undefined ? sql`` : sql`and s.name = ${stream}::text`}
        order by w.id limit ${limit + 1}::integer
      ), ${headsCte(db)}
      ${viewSelect(db)}`,
  )
  const found = rows.slice(0, limit).map(toWebhookView)
  return { webhooks: found, next: rows.length > limit ? (found.at(-1)?.id ?? null) : null }
}
