import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { Sealer } from './seal.ts'
import { openSecret, sealSecret } from './stored-secret.ts'

/** What {@link resealSecrets} returns. */
export interface ResealReport {
  /** Secrets that are sealed under the current key now, and were not before. */
  resealed: number
  /** Secrets that were sealed under it already. */
  current: number
  /** Webhooks of which a secret was sealed under a key that is not known here; it stays as it is. */
  unreadable: string[]
}

/** Rows a step reads and writes: small enough that none holds locks for long. */
const stepRows = 200

/**
 * Seals all webhook secrets anew that lie in the database under a previous master key, or in the clear.
 * Two statements a step. It may be broken off, repeated, and run beside workers that deliver, as long as
 * those know the current key too.
 */
export async function resealSecrets(
  db: Db,
  sealer: Sealer,
  options: { signal?: AbortSignal } = {},
): Promise<ResealReport> {
  const report: ResealReport = { resealed: 0, current: 0, unreadable: [] }
  let after = ''
  while (options.signal?.aborted !== true) {
    const rows = await readSecrets(db, after)
    const stale = rows.filter(({ sealed }) => sealer.isStale(sealed))
    report.current += rows.length - stale.length
    report.resealed += await replaceSecrets(db, await resealed(stale, sealer, report))
    const last = rows.at(-1)
    if (last === undefined || rows.length < stepRows) break
    after = last.id
  }
  return report
}

interface StoredSecret {
  id: string
  webhookId: string
  sealed: string
}

interface Resealed {
  id: string
  old: string
  sealed: string
}

async function readSecrets(db: Db, after: string): Promise<StoredSecret[]> {
  return runQuery<{ id: string; webhookId: string; sealed: string }>(
    db,
    sql`select k.id, k.webhook_id as "webhookId", k.sealed from ${db.tables.webhookSecrets} k
      where k.id > ${after}::text order by k.id limit ${stepRows}::integer`,
  )
}

async function resealed(
  stale: readonly StoredSecret[],
  sealer: Sealer,
  report: ResealReport,
): Promise<Resealed[]> {
  const made: Resealed[] = []
  for (const { id, webhookId, sealed } of stale) {
    const secret = await openSecret(sealer, sealed, webhookId).catch(() => null)
    if (secret === null) report.unreadable.push(webhookId)
    else made.push({ id, old: sealed, sealed: await sealSecret(sealer, secret, webhookId) })
  }
  return made
}

/** What somebody else has resealed meanwhile stays. */
async function replaceSecrets(db: Db, made: readonly Resealed[]): Promise<number> {
  if (made.length === 0) return 0
  const [row] = await runQuery<{ count: string }>(
    db,
    sql`with replaced as (
        update ${db.tables.webhookSecrets} k set sealed = n.sealed
        from json_to_recordset(${JSON.stringify(made)}::text::json) as n (id text, old text, sealed text)
        where k.id = n.id and k.sealed = n.old returning 1
      ) select count(*)::text from replaced`,
  )
  return toNumber(row?.count)
}
