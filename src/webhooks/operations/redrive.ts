import { sql, type SQL } from 'drizzle-orm'
import { toNumber } from '../../db/decode.ts'
import type { Db } from '../../db/port.ts'
import { qualified, runQuery } from '../../db/run.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import { noWebhook } from '../get-webhook.ts'
import { isWebhookId } from '../webhook-id.ts'

/** Rows a statement moves. */
const stepRows = 5_000

/**
 * Gives dead letters of a webhook a fresh set of attempts, due at once. What came after them was sent long
 * ago, so they stand outside the order now. Returns how many.
 *
 * @param since only those that died at or after this time; default: all
 * @throws NOT_FOUND
 */
export async function redriveWebhook(db: Db, id: string, since?: Date): Promise<number> {
  const wanted = since === undefined ? sql`true` : sql`d.updated_at >= ${since.toISOString()}::timestamptz`
  let total = 0
  for (;;) {
    const moved = await revive(db, id, sql`d.state = 'dead' and ${wanted}`)
    if (moved === null) throw noWebhook()
    total += moved
    if (moved < stepRows) return total
  }
}

/**
 * Retries one delivery now: a retrying one before its time, a dead one with a fresh set of attempts.
 *
 * @throws NOT_FOUND; CONFLICT when it waits behind another of its key
 */
export async function retryDelivery(db: Db, id: string, offset: number): Promise<void> {
  const moved = await revive(db, id, sql`d.state <> 'blocked' and d."offset" = ${offset}::bigint`)
  if (moved === null) throw noWebhook()
  if (moved > 0) return
  const { deliveries } = db.tables
  const [blocked] = await runQuery<{ unit: string }>(
    db,
    sql`select d.unit from ${deliveries} d where d.webhook_id = ${id}::text and d."offset" = ${offset}::bigint`,
  )
  if (blocked === undefined)
    throw new MillraceError('NOT_FOUND', `no delivery of offset ${offset} is in trouble`)
  throw new MillraceError('CONFLICT', 'the delivery waits behind an earlier one of its key: retry that one')
}

async function revive(db: Db, id: string, which: SQL): Promise<number | null> {
  if (!isWebhookId(id)) return null
  const { webhooks, deliveries } = db.tables
  const [row] = await runQuery<{ moved: string }>(
    db,
    sql`with target as (select w.id, w.stream_id from ${webhooks} w where w.id = ${id}::text for update),
      chosen as (
        select d.webhook_id, d."offset" from ${deliveries} d join target t on t.id = d.webhook_id
        where ${which} order by d."offset" limit ${stepRows}::integer for update of d
      ), moved as (
        update ${deliveries} d set
          unit = case when d.state = 'dead' then null else d.unit end,
          attempts = case when d.state = 'dead' then 0 else d.attempts end,
          state = 'retrying', due_at = clock_timestamp(), updated_at = clock_timestamp()
        from chosen c where d.webhook_id = c.webhook_id and d."offset" = c."offset" returning 1
      ), due as (
        update ${webhooks} w set due_at = clock_timestamp() from target t
        where w.id = t.id and exists (select 1 from chosen)
      )
      select (select count(*) from moved)::text as moved, ${qualified(db, 'wake_webhook')}(t.id) from target t`,
  )
  return row === undefined ? null : toNumber(row.moved)
}
