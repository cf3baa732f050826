import { sql } from 'drizzle-orm'
import { isOurs } from '../../db/fence.ts'
import type { Db } from '../../db/port.ts'
import { runQuery } from '../../db/run.ts'
import { foreignDatabase } from '../../db/translate-error.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { Clock } from '../../ports.ts'
import type { ClaimedWebhook } from '../engine/claim-webhooks.ts'
import type { Delivery } from '../engine/engine.ts'
import { cancelOn } from '../cancel.ts'
import { webhookJson } from '../engine/webhook-json.ts'
import { noWebhook } from '../get-webhook.ts'
import type { SendResult } from '../sender.ts'
import { isWebhookId } from '../webhook-id.ts'

/** What a test event's data says. */
const testData = '{"message":"This is a test event from Millrace. It stands in no stream."}'

/**
 * Sends a signed test event (`millrace.test`) to a webhook now, whatever its state, filter and order, and
 * returns the answer. Nothing is stored. One statement.
 *
 * @throws NOT_FOUND; WRONG_ENVIRONMENT where the database belongs to another one (W7)
 */
export async function testWebhook(
  db: Db,
  id: string,
  parts: { delivery: (installationId: string) => Delivery; clock: Clock; signal: AbortSignal },
): Promise<SendResult> {
  if (!isWebhookId(id)) throw noWebhook()
  const { webhooks, streams, installation } = db.tables
  const [row] = await runQuery<{ webhook: string; installation_id: string; ours: boolean }>(
    db,
    sql`select ${webhookJson(db, sql`null`)}::text as webhook, i.id::text as installation_id,
        ${isOurs(db)} as ours
      from ${webhooks} l join ${streams} s on s.id = l.stream_id cross join ${installation} i
      where l.id = ${id}::text`,
  )
  if (row === undefined) throw noWebhook()
  if (!row.ours) throw new MillraceError('WRONG_ENVIRONMENT', foreignDatabase)
  const now = parts.clock.now()
  // no event has a negative number, and each test has another: receivers drop what they know
  const event = { offset: -now, type: 'millrace.test', key: null, dataText: testData, headers: null }
  return parts
    .delivery(row.installation_id)
    .attempt(
      JSON.parse(row.webhook) as ClaimedWebhook,
      { ...event, publishedAt: new Date(now) },
      cancelOn(parts.signal),
    )
}
