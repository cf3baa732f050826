import { sql, type SQL } from 'drizzle-orm'
import { isoText } from '../../db/iso-text.ts'
import type { Db } from '../../db/port.ts'
import { qualified, runQuery } from '../../db/run.ts'
import { invalidInput, MillraceError } from '../../errors/millrace-error.ts'
import type { Clock } from '../../ports.ts'
import { noWebhook } from '../get-webhook.ts'
import { announced, secretRotated, wakeOfAnnounced } from '../operational-events.ts'
import type { Sealer } from '../seal.ts'
import { signingSecret } from '../signing-secret.ts'
import { sealSecret } from '../stored-secret.ts'
import { isWebhookId } from '../webhook-id.ts'
import { awaitQuiet } from './await-quiet.ts'

/** What {@link rotateSecret} takes. */
export interface Rotation {
  /** The new secret, of the webhook's kind. Default: a generated one. */
  secret?: string
  /** How long the old secret still signs beside the new one: 0 to 604800000 (7 days), default 86400000 (24 hours). */
  overlapMs?: number
}

/** What {@link rotateSecret} returns: the only time that the secret is shown. */
export interface RotatedSecret {
  secret: string
  /** For v1a: what receivers verify with. */
  publicKey?: string
  /** Until when the old secret signs too; ISO 8601. */
  overlapUntil: string
}

const dayMs = 86_400_000
const maxOverlapMs = 7 * dayMs

/**
 * So many secrets of a webhook sign at once, the current one among them. Enough for rotations that were repeated
 * because their answers were lost, and half of what a receiver checks (`maxSignatures` in verify.ts).
 */
const maxSecrets = 8

/** Losing to a rotation that runs at this moment, or to a claim, hardly happens twice. */
const maxTries = 5

/**
 * Gives a webhook a new secret. Until the overlap ends both sign; a later rotation starts an overlap of its
 * own, and the 8 youngest secrets sign at most: the oldest goes before its time. Returns once the worker that was delivering knows: what it sends from then on is signed anew, only what
 * it had on its way may still arrive. One statement after one that reads the webhook's kind, and what
 * {@link awaitQuiet} asks.
 *
 * @throws NOT_FOUND, INVALID_INPUT
 */
export async function rotateSecret(
  db: Db,
  id: string,
  rotation: Rotation,
  rules: { sealer: Sealer | null; clock: Clock },
): Promise<RotatedSecret> {
  const { overlapMs = dayMs } = rotation
  if (!Number.isSafeInteger(overlapMs) || overlapMs < 0 || overlapMs > maxOverlapMs) {
    throw invalidInput('overlapMs', `must be a whole number from 0 to ${maxOverlapMs}`)
  }
  const made = await signingSecret({ signature: await signatureOf(db, id), secret: rotation.secret })
  const overlapUntil = await replaceSecret(db, id, await sealSecret(rules.sealer, made.secret, id), overlapMs)
  await awaitQuiet(db, id, rules.clock)
  return {
    secret: made.secret,
    ...(made.publicKey === null ? {} : { publicKey: made.publicKey }),
    overlapUntil,
  }
}

async function signatureOf(db: Db, id: string): Promise<'v1' | 'v1a'> {
  if (!isWebhookId(id)) throw noWebhook()
  const [row] = await runQuery<{ signature: 'v1' | 'v1a' }>(
    db,
    sql`select w.signature from ${db.tables.webhooks} w where w.id = ${id}::text`,
  )
  if (row === undefined) throw noWebhook()
  return row.signature
}

async function replaceSecret(db: Db, id: string, sealed: string, overlapMs: number): Promise<string> {
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const [row] = await runQuery<{ until: string }>(db, replaceStatement(db, id, sealed, overlapMs))
    if (row !== undefined) return row.until
    await signatureOf(db, id)
  }
  throw new MillraceError('DATABASE_BUSY', 'the webhook is being changed by others')
}

/**
 * What was current by this statement's snapshot expires, so it does nothing when the webhook was claimed or changed
 * between the snapshot and the lock: of two rotations at once, both new secrets would stay. The fence tells, and
 * tells the worker, too, that what it claimed is out of date.
 */
function replaceStatement(db: Db, id: string, sealed: string, overlapMs: number): SQL {
  const { webhooks, webhookSecrets } = db.tables
  return sql`with seen as materialized (
        select w.id, w.lease_fence from ${webhooks} w where w.id = ${id}::text
      ), target as materialized (
        select w.id, w.stream_id, clock_timestamp() + ${overlapMs}::bigint * interval '1 millisecond' as until
        from ${webhooks} w join seen s on s.id = w.id and s.lease_fence = w.lease_fence for update of w
      ), changed as (
        update ${webhooks} w set lease_fence = w.lease_fence + 1 from target t where w.id = t.id
      ), expiring as (
        update ${webhookSecrets} k set expires_at = t.until from target t
        where k.webhook_id = t.id and k.expires_at is null
      ), gone as (
        delete from ${webhookSecrets} k using target t where k.webhook_id = t.id and (
          k.expires_at <= clock_timestamp() or k.id in (
            select o.id from ${webhookSecrets} o
            where o.webhook_id = t.id and o.expires_at > clock_timestamp()
            -- beside these the current one, which expires now, and the new one
            order by o.created_at desc offset ${maxSecrets - 2}::integer))
      ), made as (
        insert into ${webhookSecrets} (id, webhook_id, sealed)
        select ${crypto.randomUUID()}::text, t.id, ${sealed}::text from target t
      ), ${announced(db, rotationNotice(db))}
      select ${isoText(sql`t.until`)} as until,
        ${qualified(db, 'wake_webhook')}(t.id), ${wakeOfAnnounced(db)}
      from target t`
}

function rotationNotice(db: Db): SQL {
  return sql`select t.id, ${secretRotated}::text as type,
      json_build_object('webhookId', t.id, 'stream', s.name, 'overlapUntil', ${isoText(sql`t.until`)}) as data
    from target t join ${db.tables.streams} s on s.id = t.stream_id`
}
