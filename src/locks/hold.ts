import { and, eq, gt, sql } from 'drizzle-orm'
import { executorFor, type Executor, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import { assertTtl, type HeldLock } from './lock.ts'

/** Options of {@link renewLock}. */
export interface RenewOptions extends TxOption {
  /** How long from now on: 100 to 86,400,000 ms. */
  ttlMs: number
}

/**
 * Holds a lock for longer. Returns the new end, or null when it is no longer held: it ran out (even if
 * nobody has taken it since), or was released. One statement.
 *
 * With `{ tx }` it is a fenced write: whoever renews in the transaction that changes what the lock
 * protects commits only as the holder, since nobody takes the lock before that transaction has ended.
 *
 * @throws INVALID_INPUT
 */
export async function renewLock(db: Executor, lock: HeldLock, options: RenewOptions): Promise<Date | null> {
  assertTtl(options.ttlMs)
  const on = executorFor(db, options)
  const { locks } = on.tables
  const [row] = await translated(
    on.drizzle
      .update(locks)
      .set({ until: sql`clock_timestamp() + ${options.ttlMs}::integer * interval '1 millisecond'` })
      .where(isHeld(on, lock))
      .returning({ until: locks.until }),
  )
  return row?.until ?? null
}

/**
 * Gives a lock back. Returns false when it was no longer held, and then changes nothing. One statement.
 * With `{ tx }` it is free when the transaction commits.
 */
export async function releaseLock(db: Executor, lock: HeldLock, options: TxOption = {}): Promise<boolean> {
  const on = executorFor(db, options)
  const rows = await translated(
    on.drizzle
      .update(on.tables.locks)
      .set({ token: null, until: sql`clock_timestamp()` })
      .where(isHeld(on, lock))
      .returning({ name: on.tables.locks.name }),
  )
  return rows.length === 1
}

function isHeld(on: Executor, lock: HeldLock) {
  const { locks } = on.tables
  return and(
    eq(locks.name, lock.name),
    // compared as text: a token that is no UUID is just a wrong one
    eq(sql`${locks.token}::text`, lock.token),
    gt(locks.until, sql`clock_timestamp()`),
  )
}
