import { sql, type SQL } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { isOurs } from '../db/fence.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/** The attempt log is for an operator who looks into last week's trouble, not an archive. */
const maxAgeDays = 30
/** So many attempts of a webhook are kept at most: several days of one that fails all the time. */
const maxPerWebhook = 10_000
/** Rows a statement deletes, so that none holds locks for long. */
const stepRows = 1_000

/** Options of {@link removeOldAttempts}. */
export interface AttemptRetentionOptions {
  /** How many attempts of a webhook are kept. Default 10,000, minimum 1. */
  maxPerWebhook?: number
  /** Asked before each step: true leaves the rest to the next run. */
  isOver?: () => boolean
}

/**
 * Removes attempts older than 30 days, and of each webhook what goes beyond the newest 10,000, in small steps;
 * several workers may run it at once, and in a database of another environment none does (W7). Returns how many it removed.
 */
export async function removeOldAttempts(db: Db, options: AttemptRetentionOptions = {}): Promise<number> {
  const { isOver = () => false } = options
  let removed = 0
  for (const old of [agedOut(db), beyondTheCap(db, options.maxPerWebhook ?? maxPerWebhook)]) {
    for (let step = stepRows; step === stepRows && !isOver(); removed += step) step = await remove(db, old)
  }
  return removed
}

function agedOut(db: Db): SQL {
  const { attempts } = db.tables
  return sql`select a.id from ${attempts} a
    where a.at < now() - ${maxAgeDays}::integer * interval '1 day' and ${isOurs(db)}
    order by a.at limit ${stepRows}::integer for update skip locked`
}

function beyondTheCap(db: Db, cap: number): SQL {
  const { attempts, webhooks } = db.tables
  return sql`select old.id from ${webhooks} w
    cross join lateral (
      select k.id from ${attempts} k where k.webhook_id = w.id order by k.id desc offset ${cap - 1}::integer limit 1
    ) edge
    cross join lateral (
      select o.id from ${attempts} o where o.webhook_id = w.id and o.id < edge.id
      order by o.id limit ${stepRows}::integer for update skip locked
    ) old
    where ${isOurs(db)}
    limit ${stepRows}::integer`
}

/** Whether {@link removeOldAttempts} would remove something, as a condition. */
export function attemptsAreOld(db: Db): SQL<boolean> {
  const { attempts, webhooks } = db.tables
  return sql`(exists (select 1 from ${attempts} a where a.at < now() - ${maxAgeDays}::integer * interval '1 day')
    or ((select max(a.id) - min(a.id) from ${attempts} a) >= ${maxPerWebhook}::bigint and exists (
      select 1 from ${webhooks} w cross join lateral (
        select 1 from ${attempts} k where k.webhook_id = w.id
        order by k.id desc offset ${maxPerWebhook}::integer limit 1) beyond)))`
}

async function remove(db: Db, old: SQL): Promise<number> {
  const [row] = await runQuery<{ removed: string }>(
    db,
    sql`with old as materialized (${old}), gone as (
        delete from ${db.tables.attempts} a using old where a.id = old.id returning 1
      )
      select count(*)::text as removed from gone`,
  )
  return toNumber(row?.removed)
}
