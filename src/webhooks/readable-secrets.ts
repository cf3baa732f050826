import { sql, type SQL } from 'drizzle-orm'
import { textArray } from '../db/array-literal.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/**
 * Whether all secrets that a webhook signs with can be opened here, as a condition on `webhookId`: they lie in the
 * clear, or are sealed under one of the master keys.
 *
 * @param keyIds what the sealer says of its keys
 */
export function secretsAreReadable(db: Db, webhookId: SQL, keyIds: readonly string[]): SQL<boolean> {
  return sql`not exists (
    select from ${db.tables.webhookSecrets} k
    where k.webhook_id = ${webhookId} and (k.expires_at is null or k.expires_at > now())
      and k.sealed ^@ 'v1.' and split_part(k.sealed, '.', 2) <> all (${textArray(keyIds)}))`
}

/** How many webhooks that are not disabled have a secret that cannot be opened here. One statement. */
export async function countUnreadable(db: Db, keyIds: readonly string[]): Promise<number> {
  const [row] = await runQuery<{ count: number }>(
    db,
    sql`select count(*)::integer as count from ${db.tables.webhooks} w
      where w.state <> 'disabled' and not ${secretsAreReadable(db, sql`w.id`, keyIds)}`,
  )
  return row?.count ?? 0
}
