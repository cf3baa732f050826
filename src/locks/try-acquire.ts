import { sql, type SQL } from 'drizzle-orm'
import { toDate, toNumber } from '../db/decode.ts'
import { executorFor, type Executor, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { assertSharedName } from '../schema/names.ts'
import { assertTtl, type Lock } from './lock.ts'

/** Options of {@link tryAcquireLock}. */
export interface TryAcquireOptions extends TxOption {
  /** How long the lock is held unless renewed: 100 to 86,400,000 ms. */
  ttlMs: number
}

/** What an attempt came to. */
export type LockAttempt =
  | { acquired: true; lock: Lock }
  /** Somebody else holds it, for so long if it is neither renewed nor released. */
  | { acquired: false; heldForMs: number }

/**
 * Takes a lock that nobody holds, or returns null: at most one holder at a time by the database's clock,
 * each with a higher fence than the last (Q4). One statement. With `{ tx }` the lock is taken when the
 * transaction commits, and until then other contenders wait for it.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function tryAcquireLock(
  db: Executor,
  name: string,
  options: TryAcquireOptions,
): Promise<Lock | null> {
  assertSharedName('lock', name)
  const attempt = await attemptLock(db, name, options)
  return attempt.acquired ? attempt.lock : null
}

/** As {@link tryAcquireLock}, also for the locks of Millrace itself, and telling how long to wait. */
export async function attemptLock(
  db: Executor,
  name: string,
  options: TryAcquireOptions,
): Promise<LockAttempt> {
  assertTtl(options.ttlMs)
  const on = executorFor(db, options)
  const token = crypto.randomUUID()
  const [row] = await runQuery<AttemptRow>(on, attemptStatement(on, name, token, options.ttlMs))
  if (row === undefined) throw new Error('the attempt returned no row')
  if (row.fence === null) return { acquired: false, heldForMs: toNumber(row.held_for_ms) }
  return { acquired: true, lock: { name, token, fence: toNumber(row.fence), until: toDate(row.until) } }
}

interface AttemptRow {
  fence: string | null
  until: unknown
  held_for_ms: string
}

/**
 * The clock is read again behind the row's lock (`on conflict … where`), so whoever waited there judges
 * by the time at which it got through. The look beforehand only spares a lock that is held the write
 * that each attempt would cost; what it says may be old, and is no reason to take anything.
 */
function attemptStatement(on: Executor, name: string, token: string, ttlMs: number): SQL {
  const { locks, lockFence } = on.tables
  const fence = sql`nextval(${`"${on.schema}"."${lockFence.seqName}"`}::text::regclass)`
  const until = sql`clock_timestamp() + ${ttlMs}::integer * interval '1 millisecond'`
  return sql`
    with held as materialized (
      select l.until from ${locks} l where l.name = ${name}::text and l.until > clock_timestamp()
    ), taken as (
      insert into ${locks} as l (name, token, fence, until)
      select ${name}::text, ${token}::uuid, ${fence}, ${until} where not exists (select 1 from held)
      on conflict (name) do update
        set token = excluded.token, fence = ${fence}, until = ${until}, acquired_at = clock_timestamp()
        where l.until <= clock_timestamp()
      returning l.fence, l.until
    )
    select t.fence::text, t.until,
      coalesce((select greatest(0, ceil(extract(epoch from h.until - clock_timestamp()) * 1000)) from held h), 0)::bigint::text
        as held_for_ms
    from (select 1) one left join taken t on true`
}
