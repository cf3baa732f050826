import { sql } from 'drizzle-orm'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { isWebhookId } from './webhook-id.ts'
import { headsCte, toWebhookView, viewSelect, type WebhookView } from './webhook-view.ts'

/**
 * Reads one webhook. One statement.
 *
 * @throws NOT_FOUND
 */
export async function getWebhook(db: Db, id: string): Promise<WebhookView> {
  if (!isWebhookId(id)) throw noWebhook()
  const { webhooks, streams } = db.tables
  const [row] = await runQuery<{ view: string }>(
    db,
    sql`with page as (
        select w.*, s.name as stream_name from ${webhooks} w join ${streams} s on s.id = w.stream_id
        where w.id = ${id}::text
      ), ${headsCte(db)}
      ${viewSelect(db)}`,
  )
  if (row === undefined) throw noWebhook()
  return toWebhookView(row)
}

/** The error for an id that names no webhook. */
export function noWebhook(): MillraceError {
  return new MillraceError('NOT_FOUND', 'there is no webhook of this id')
}
