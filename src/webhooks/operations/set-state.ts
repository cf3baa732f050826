import { sql } from 'drizzle-orm'
import type { Db } from '../../db/port.ts'
import { qualified, runQuery } from '../../db/run.ts'
import type { Clock } from '../../ports.ts'
import { getWebhook, noWebhook } from '../get-webhook.ts'
import { isWebhookId } from '../webhook-id.ts'
import type { WebhookView } from '../webhook-view.ts'
import { awaitQuiet } from './await-quiet.ts'

/**
 * Pauses a webhook: nothing more is sent, nothing is lost, its events wait from the offset. Returns once the
 * worker that was delivering knows; what it had on its way then may still arrive. A disabled one stays
 * disabled.
 *
 * @throws NOT_FOUND
 */
export async function pauseWebhook(db: Db, id: string, clock: Clock): Promise<WebhookView> {
  await changeState(db, id, sql`state = case when w.state = 'active' then 'paused' else w.state end`)
  await awaitQuiet(db, id, clock)
  return getWebhook(db, id)
}

/**
 * Resumes a paused or disabled webhook, which goes on where it stopped and has five days to succeed. One statement, and one to read it.
 *
 * @throws NOT_FOUND
 */
export async function resumeWebhook(db: Db, id: string): Promise<WebhookView> {
  await changeState(db, id, sql`state = 'active', state_reason = null, disable_after = null`)
  return getWebhook(db, id)
}

async function changeState(db: Db, id: string, assignment: ReturnType<typeof sql>): Promise<void> {
  if (!isWebhookId(id)) throw noWebhook()
  const [row] = await runQuery<{ id: string }>(
    db,
    sql`with changed as (
        update ${db.tables.webhooks} w set ${assignment}, updated_at = clock_timestamp()
        where w.id = ${id}::text returning w.id, w.stream_id
      )
      select c.id, ${qualified(db, 'wake_webhook')}(c.id), ${qualified(db, 'wake_stream')}(c.stream_id)
      from changed c`,
  )
  if (row === undefined) throw noWebhook()
}
