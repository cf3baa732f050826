import { eq } from 'drizzle-orm'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import type { Clock } from '../ports.ts'
import { noWebhook } from './get-webhook.ts'
import { pauseWebhook } from './operations/set-state.ts'
import { isWebhookId } from './webhook-id.ts'

/**
 * Deletes a webhook with its secrets, its deliveries in trouble and its log of attempts. With a clock it
 * first pauses it, so that on return the worker that was delivering knows, and only what was on its way by
 * then may still arrive; without one (in a transaction) that worker finds out with its next flush.
 *
 * @throws NOT_FOUND
 */
export async function deleteWebhook(
  db: Db,
  id: string,
  options: TxOption & { clock?: Clock } = {},
): Promise<void> {
  if (!isWebhookId(id)) throw noWebhook()
  if (options.clock !== undefined) await pauseWebhook(db, id, options.clock)
  const { drizzle, tables } = executorFor(db, options)
  const { webhooks } = tables
  const [row] = await translated(
    drizzle.delete(webhooks).where(eq(webhooks.id, id)).returning({ id: webhooks.id }),
  )
  if (row === undefined) throw noWebhook()
}
