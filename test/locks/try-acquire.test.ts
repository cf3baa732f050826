import { sql } from 'drizzle-orm'
import { expect, it, vi } from 'vitest'
import type { Db, Executor } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { releaseLock, renewLock } from '../../src/locks/hold.ts'
import { purgeLocks } from '../../src/locks/purge-locks.ts'
import { tryAcquireLock } from '../../src/locks/try-acquire.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'

const ttlMs = 60_000

/** What time does: the lock ends now, by the database's clock. */
async function expire(db: Db, name: string, by = '0 seconds'): Promise<void> {
  await runQuery(
    db,
    sql`update ${db.tables.locks} set until = clock_timestamp() - ${by}::text::interval where name = ${name}`,
  )
}

describeOnEveryDriver('a lock', (given) => {
  it('is refused while another holds it, and free after its release (Q4)', async () => {
    const { db } = given()
    const first = await tryAcquireLock(db, 'refused', { ttlMs })
    expect(first).toMatchObject({ name: 'refused', token: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    expect(await tryAcquireLock(db, 'refused', { ttlMs })).toBeNull()
    expect(await releaseLock(db, first!)).toBe(true)
    const second = await tryAcquireLock(db, 'refused', { ttlMs })
    expect(second!.fence).toBeGreaterThan(first!.fence)
  })

  it('is free once its time has run out, and the next holder has a higher fence (Q4)', async () => {
    const { db } = given()
    const first = await tryAcquireLock(db, 'expiring', { ttlMs })
    await expire(db, 'expiring')
    const second = await tryAcquireLock(db, 'expiring', { ttlMs })
    expect(second!.fence).toBeGreaterThan(first!.fence)
    expect(second!.token).not.toBe(first!.token)
  })

  it('ends when the database says so, whatever the clock of the process says (Q6)', async () => {
    const { db } = given()
    const lock = await tryAcquireLock(db, 'database-time', { ttlMs })
    const [row] = await runQuery<{ left_ms: string }>(
      db,
      sql`select (extract(epoch from until - acquired_at) * 1000)::text as left_ms
        from ${db.tables.locks} where name = 'database-time'`,
    )
    expect(Number(row!.left_ms)).toBeGreaterThanOrEqual(ttlMs - 50)
    expect(Number(row!.left_ms)).toBeLessThanOrEqual(ttlMs + 50)
    expect(lock!.until).toBeInstanceOf(Date)
  })

  it('is neither renewed nor released by whom it was taken from, nor after its end', async () => {
    const { db } = given()
    const stale = await tryAcquireLock(db, 'stale', { ttlMs })
    await expire(db, 'stale')
    expect(await renewLock(db, stale!, { ttlMs })).toBeNull()
    expect(await releaseLock(db, stale!)).toBe(false)
    const holder = await tryAcquireLock(db, 'stale', { ttlMs })
    expect(await renewLock(db, stale!, { ttlMs })).toBeNull()
    expect(await releaseLock(db, stale!)).toBe(false)
    expect(await renewLock(db, { name: 'stale', token: 'no uuid' }, { ttlMs })).toBeNull()
    expect(await tryAcquireLock(db, 'stale', { ttlMs })).toBeNull()
    const until = await renewLock(db, holder!, { ttlMs: ttlMs * 2 })
    expect(until!.getTime() - holder!.until.getTime()).toBeGreaterThanOrEqual(ttlMs)
  })

  it('keeps its fences ascending when its row was purged (Q4)', async () => {
    const { db } = given()
    const before = await tryAcquireLock(db, 'purged', { ttlMs })
    const held = await tryAcquireLock(db, 'not-purged', { ttlMs })
    await expire(db, 'purged', '25 hours')
    expect(await purgeLocks(db)).toBe(1)
    const after = await tryAcquireLock(db, 'purged', { ttlMs })
    expect(after!.fence).toBeGreaterThan(before!.fence)
    expect(await renewLock(db, held!, { ttlMs })).toBeInstanceOf(Date)
  })

  it.each([99, 86_400_001, 1000.5, Number.NaN])('refuses a time of %s ms', async (bad) => {
    await expect(tryAcquireLock(given().db, 'time', { ttlMs: bad })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      details: { field: 'ttlMs' },
    })
  })

  it.each(['', 'a b', 'millrace.schedules'])('refuses the name "%s"', async (name) => {
    await expect(tryAcquireLock(given().db, name, { ttlMs })).rejects.toMatchObject({ code: 'INVALID_NAME' })
  })
})

describeOnEveryDriver(
  'a lock in a transaction',
  (given) => {
    it('is taken and released by the commit', async () => {
      const { db } = given()
      await expect(
        db.transaction(async ({ drizzle: tx }) => {
          expect(await tryAcquireLock(db, 'in-tx', { ttlMs, tx })).not.toBeNull()
          throw new Error('roll back')
        }),
      ).rejects.toThrow('roll back')
      const lock = await tryAcquireLock(db, 'in-tx', { ttlMs })
      await expect(
        db.transaction(async ({ drizzle: tx }) => {
          expect(await releaseLock(db, lock!, { tx })).toBe(true)
          throw new Error('roll back')
        }),
      ).rejects.toThrow('roll back')
      expect(await tryAcquireLock(db, 'in-tx', { ttlMs })).toBeNull()
    })
  },
  { needs: ['interactiveTx'] },
)

describeOnEveryDriver(
  'a lock that a transaction renews',
  (given) => {
    it('fences it: nobody takes the lock before the commit (Q4)', async () => {
      const { db } = given()
      const other = given().another()
      const lock = await tryAcquireLock(db, 'fenced', { ttlMs: 200 })
      let contender: Promise<unknown> | undefined
      await db.transaction(async (tx) => {
        expect(await renewLock(db, lock!, { ttlMs, tx: tx.drizzle })).toBeInstanceOf(Date)
        // past the end that everybody else still sees, by the database's clock
        await runQuery(tx, sql`select pg_sleep(0.25)::text`)
        contender = tryAcquireLock(other, 'fenced', { ttlMs })
        await vi.waitFor(async () => expect(await waiting(tx)).toBe('1'), { timeout: 5000 })
      })
      expect(await contender).toBeNull()
      await other.close()
    })
  },
  { needs: ['interactiveTx', 'sessions'] },
)

/** How many sessions wait for a lock of Postgres. */
async function waiting(on: Executor): Promise<string> {
  // a transaction keeps the list of sessions that it saw first
  await runQuery(on, sql`select pg_catalog.pg_stat_clear_snapshot()::text`)
  const [row] = await runQuery<{ waiting: string }>(
    on,
    sql`select count(*)::text as waiting from pg_catalog.pg_locks l
      where not l.granted and l.pid in (
        select a.pid from pg_catalog.pg_stat_activity a where a.datname = current_database())`,
  )
  return row!.waiting
}
