import { eq } from 'drizzle-orm'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import { noWebhook } from './get-webhook.ts'
import { isWebhookId } from './webhook-id.ts'

/**
 * Deletes a webhook with its secrets, its deliveries in trouble and its log of attempts. What is on its
 * way at this moment may still arrive. One statement.
 *
 * @throws NOT_FOUND
 */
export async function deleteWebhook(db: Db, id: string, options: TxOption = {}): Promise<void> {
  if (!isWebhookId(id)) throw noWebhook()
  const { drizzle, tables } = executorFor(db, options)
  const { webhooks } = tables
  const [row] = await translated(
    drizzle.delete(webhooks).where(eq(webhooks.id, id)).returning({ id: webhooks.id }),
  )
  if (row === undefined) throw noWebhook()
}
