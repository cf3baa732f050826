import { sql } from 'drizzle-orm'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { environmentNameRule, isEnvironmentName } from '../schema/labels.ts'
import { toNumber } from './decode.ts'
import type { Db, Executor } from './port.ts'
import { qualified, runQuery } from './run.ts'

/** Options of {@link adoptEnvironment}. */
export interface AdoptOptions {
  /** The name that the database gets: 1 to 64 letters, digits, `.`, `_` and `-`, not beginning with `-`. */
  environment: string
  /**
   * True leaves active webhooks active, so that the copy delivers to the same endpoints as its original.
   * Default false: they are paused.
   */
  keepWebhooks?: boolean
  /**
   * True only gives the name: for the original, which had none or is renamed. Installation id, leases and
   * webhooks stay. Default false.
   */
  keepIdentity?: boolean
  /** True adopts a database that bears the name already. Default false. */
  again?: boolean
  /** True only tells what would be done. Default false. */
  dryRun?: boolean
}

/** Whose a database is. */
export interface Identity {
  installationId: string
  environment: string | null
}

/** What {@link adoptEnvironment} did, or in a dry run would do. */
export interface Adopted {
  before: Identity
  /** In a dry run a new installation id is not yet the one that the database will get. */
  after: Identity
  /** Webhooks that were active and are paused now. */
  webhooksPaused: number
  /** Leases of others that count no more: on webhooks, messages and locks. */
  leasesDropped: { webhooks: number; messages: number; locks: number }
}

/** Who writes at this moment gets so long to finish. */
const lockTimeout = '10s'

/**
 * Makes a database the own of an environment (W7): for a branch or a restored copy, whose webhooks, due
 * retries, schedules and leased work are those of the original. In one transaction it gets a new installation
 * id, so that no receiver takes its deliveries for the original's (`webhook-id` differs); every lease ends,
 * so that whoever held one in the original can settle nothing here; active webhooks are paused. A message
 * that was leased is ready again and the attempt does not count: it goes on in the original, not here.
 * Offsets, retries, dead letters and schedules stay, and go on from where the copy was made: what a schedule
 * has missed since is caught up by its own policy. Workers of this environment that already wait are woken.
 *
 * @throws INVALID_INPUT; CONFLICT when it bears the name already; NOT_MIGRATED;
 *   TRANSACTION_UNSUPPORTED on neon-http; DATABASE_BUSY when writers do not let it through within 10 s
 */
export async function adoptEnvironment(db: Db, options: AdoptOptions): Promise<Adopted> {
  if (!isEnvironmentName(options.environment)) throw invalidInput('environment', environmentNameRule)
  let adopted: Adopted | undefined
  try {
    await db.transaction(async (tx) => {
      adopted = await adopt(tx, options)
      if (options.dryRun === true) throw undo
    })
  } catch (error) {
    if (error !== undo) throw error
  }
  return adopted!
}

/** Thrown to roll a dry run back. */
const undo = new Error('a dry run')

async function adopt(tx: Executor, options: AdoptOptions): Promise<Adopted> {
  await lockWriters(tx)
  const before = await readIdentity(tx)
  if (before.environment === options.environment && options.again !== true) {
    throw new MillraceError('CONFLICT', `the database belongs to "${options.environment}" already`, {
      details: { environment: options.environment },
    })
  }
  const keeps = options.keepIdentity === true
  await rename(tx, options.environment, keeps)
  const webhooks = keeps ? { paused: 0, leases: 0 } : await changeWebhooks(tx, options.keepWebhooks === true)
  const messages = keeps ? 0 : await returnMessages(tx)
  const locks = keeps ? 0 : await freeLocks(tx)
  await wakeAll(tx)
  return {
    before,
    after: await readIdentity(tx),
    webhooksPaused: webhooks.paused,
    leasesDropped: { webhooks: webhooks.leases, messages, locks },
  }
}

/** Waits for those who write and keeps new ones out, so that no claim falls between the steps. Readers go on. */
async function lockWriters(tx: Executor): Promise<void> {
  const { installation, webhooks, messages, locks } = tx.tables
  await runQuery(tx, sql`select set_config('lock_timeout', ${lockTimeout}::text, true)`)
  await runQuery(
    tx,
    sql`lock table ${installation}, ${webhooks}, ${messages}, ${locks} in share row exclusive mode`,
  )
}

async function readIdentity(tx: Executor): Promise<Identity> {
  const [row] = await runQuery<{ id: string; environment: string | null }>(
    tx,
    sql`select i.id::text as id, i.environment from ${tx.tables.installation} i`,
  )
  if (row === undefined) throw new MillraceError('NOT_MIGRATED', 'the installation row is missing')
  return { installationId: row.id, environment: row.environment }
}

async function rename(tx: Executor, environment: string, keeps: boolean): Promise<void> {
  await runQuery(
    tx,
    sql`update ${tx.tables.installation} set environment = ${environment}::text,
      id = case when ${keeps}::boolean then id else gen_random_uuid() end`,
  )
}

async function changeWebhooks(tx: Executor, keeps: boolean): Promise<{ paused: number; leases: number }> {
  const { webhooks } = tx.tables
  const [row] = await runQuery<{ paused: string; leases: string }>(
    tx,
    sql`with was as (
        select w.id, w.state = 'active' and not ${keeps}::boolean as pauses, w.lease_token is not null as leased
        from ${webhooks} w
      ), changed as (
        update ${webhooks} w
        set state = case when was.pauses then 'paused' else w.state end,
            lease_token = null, lease_until = null, lease_fence = w.lease_fence + 1,
            updated_at = clock_timestamp()
        from was where was.id = w.id and (was.pauses or was.leased)
        returning was.pauses, was.leased
      )
      select count(*) filter (where c.pauses)::text as paused, count(*) filter (where c.leased)::text as leases
      from changed c`,
  )
  return { paused: toNumber(row?.paused), leases: toNumber(row?.leases) }
}

/** As if they had not been begun; then the keys let out whom they held back, in a statement that sees it. */
async function returnMessages(tx: Executor): Promise<number> {
  const [row] = await runQuery<{ returned: string; keys: string }>(
    tx,
    sql`with returned as (
        update ${tx.tables.messages} m
        set state = 'ready', due_at = null, lease_token = null, attempts = m.attempts - 1
        where m.state = 'leased'
        returning m.queue_id, m.key
      )
      select count(*)::text as returned,
        coalesce(json_agg(distinct jsonb_build_object('queue_id', r.queue_id, 'key', r.key))
          filter (where r.key is not null), '[]')::text as keys
      from returned r`,
  )
  await runQuery(
    tx,
    sql`select ${qualified(tx, 'release_keys')}(k.queue_id, array_agg(k.key order by k.key))::text as released
      from json_to_recordset(${row?.keys ?? '[]'}::json) as k (queue_id integer, key text)
      group by k.queue_id`,
  )
  return toNumber(row?.returned)
}

/** The rows stay, and with them the order of the fences. */
async function freeLocks(tx: Executor): Promise<number> {
  const [row] = await runQuery<{ freed: string }>(
    tx,
    sql`with freed as (
        update ${tx.tables.locks} l set token = null, until = clock_timestamp()
        where l.token is not null and l.until > clock_timestamp()
        returning 1
      )
      select count(*)::text as freed from freed`,
  )
  return toNumber(row?.freed)
}

/** Delivered at commit: whoever waited for its turn in this database looks again. */
async function wakeAll(tx: Executor): Promise<void> {
  const { streams, queues } = tx.tables
  await runQuery(
    tx,
    sql`select count(${qualified(tx, 'wake_stream')}(s.id)::text)::text as woken from ${streams} s`,
  )
  await runQuery(
    tx,
    sql`select count(${qualified(tx, 'wake_queue')}(q.id)::text)::text as woken from ${queues} q`,
  )
  await runQuery(tx, sql`select pg_notify(${`${tx.schema}.wake`}::text, 't')::text as woken`)
}
