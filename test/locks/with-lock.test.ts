import { sql } from 'drizzle-orm'
import { expect, it, vi } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { acquireLock } from '../../src/locks/acquire.ts'
import { releaseLock } from '../../src/locks/hold.ts'
import { tryAcquireLock } from '../../src/locks/try-acquire.ts'
import { withLock } from '../../src/locks/with-lock.ts'
import type { Db } from '../../src/db/port.ts'
import { silentLog, systemClock } from '../../src/system-ports.ts'
import { createDrivenClock } from '../support/clock.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'

const ttlMs = 60_000
const real = { clock: systemClock, random: Math.random, log: silentLog }

function driven() {
  const clock = createDrivenClock()
  return { clock, random: () => 0.5, log: silentLog }
}

/** What time does: the lock ends now, by the database's clock. */
async function expire(db: Db, name: string): Promise<void> {
  await runQuery(db, sql`update ${db.tables.locks} set until = clock_timestamp() where name = ${name}`)
}

/** How long the lock still lasts by the database's clock. */
async function leftMs(db: Db, name: string): Promise<number> {
  const [row] = await runQuery<{ left_ms: string }>(
    db,
    sql`select (extract(epoch from until - clock_timestamp()) * 1000)::text as left_ms
      from ${db.tables.locks} where name = ${name}`,
  )
  return Number(row!.left_ms)
}

/** A promise, and the function that resolves it. */
function signalled() {
  let resolve!: () => void
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}

describeOnEveryDriver('waiting for a lock', (given) => {
  it('gets it as soon as it is released', async () => {
    const { db } = given()
    const ports = driven()
    const holder = await tryAcquireLock(db, 'wait', { ttlMs })
    const waiter = acquireLock(db, ports, 'wait', { ttlMs, waitMs: 10_000 })
    await ports.clock.waitForTimers(1)
    await releaseLock(db, holder!)
    await ports.clock.advance(ports.clock.nextIn()!)
    expect((await waiter)!.fence).toBeGreaterThan(holder!.fence)
  })

  it('asks again at once when the lock runs out, however far apart its polls are', async () => {
    const { db } = given()
    const holder = await tryAcquireLock(db, 'run-out', { ttlMs: 400 })
    const lock = await acquireLock(db, { ...real, random: () => 1 }, 'run-out', { ttlMs, waitMs: 10_000 })
    expect(lock!.fence).toBeGreaterThan(holder!.fence)
  })

  it('gives up when the time is over, and asks once when there is none', async () => {
    const { db } = given()
    const ports = driven()
    await tryAcquireLock(db, 'give-up', { ttlMs })
    expect(await acquireLock(db, ports, 'give-up', { ttlMs })).toBeNull()
    const waiter = acquireLock(db, ports, 'give-up', { ttlMs, waitMs: 100 })
    let polls = 0
    for (let spentMs = 0; spentMs < 100; polls++) {
      await ports.clock.waitForTimers(1)
      const ms = ports.clock.nextIn()!
      spentMs += ms
      await ports.clock.advance(ms)
    }
    expect(await waiter).toBeNull()
    // 18.75, 37.5, and what is left of the 100
    expect(polls).toBe(3)
    expect(ports.clock.pending()).toBe(0)
  })

  it('ends with ABORTED as soon as the signal aborts, and leaves no timer', async () => {
    const { db } = given()
    const ports = driven()
    await tryAcquireLock(db, 'abort', { ttlMs })
    const controller = new AbortController()
    const waiter = acquireLock(db, ports, 'abort', { ttlMs, waitMs: Infinity, signal: controller.signal })
    await ports.clock.waitForTimers(1)
    controller.abort()
    await expect(waiter).rejects.toMatchObject({ code: 'ABORTED' })
    expect(ports.clock.pending()).toBe(0)
  })

  it('refuses a negative wait', async () => {
    const attempt = acquireLock(given().db, real, 'negative', { ttlMs, waitMs: -1 })
    await expect(attempt).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'waitMs' } })
  })
})

describeOnEveryDriver('withLock', (given) => {
  it('holds the lock while the work runs, and gives it back, whether it succeeds or throws', async () => {
    const { db } = given()
    const ports = driven()
    const done = await withLock(db, ports, 'work', { ttlMs }, async (lock, signal) => {
      expect(await tryAcquireLock(db, 'work', { ttlMs })).toBeNull()
      expect(signal.aborted).toBe(false)
      return lock.fence
    })
    expect(done).toEqual({ acquired: true, value: expect.any(Number) })
    const failing = withLock(db, ports, 'work', { ttlMs }, () => Promise.reject(new Error('broken')))
    await expect(failing).rejects.toThrow('broken')
    expect(await tryAcquireLock(db, 'work', { ttlMs })).not.toBeNull()
    expect(await withLock(db, ports, 'work', { ttlMs }, () => Promise.resolve(1))).toEqual({
      acquired: false,
    })
    expect(ports.clock.pending()).toBe(0)
  })

  it('renews every third of the time', async () => {
    const { db } = given()
    const ports = driven()
    // long by the database's clock too, which goes on while a loaded machine renews
    await withLock(db, ports, 'renewed', { ttlMs: 3_000_000 }, async (_lock, signal) => {
      for (let turn = 0; turn < 3; turn++) {
        await runQuery(
          db,
          sql`update ${db.tables.locks} set until = clock_timestamp() + interval '1000 seconds' where name = 'renewed'`,
        )
        await ports.clock.advance(1_000_000)
        await vi.waitFor(async () => expect(await leftMs(db, 'renewed')).toBeGreaterThan(1_500_000), {
          timeout: 20_000,
        })
      }
      expect(signal.aborted).toBe(false)
    })
  })

  it('aborts its signal when another has the lock, and rejects with LEASE_LOST (Q4)', async () => {
    const { db } = given()
    const ports = driven()
    const lost = withLock(db, ports, 'stolen', { ttlMs: 3000 }, async (_lock, signal) => {
      const aborted = signalled()
      signal.addEventListener('abort', aborted.resolve)
      await expire(db, 'stolen')
      const other = await tryAcquireLock(db, 'stolen', { ttlMs })
      expect(other).not.toBeNull()
      await ports.clock.advance(1000)
      await aborted.promise
      expect(signal.reason).toMatchObject({ code: 'LEASE_LOST', details: { lock: 'stolen' } })
      return 'too late'
    })
    await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' })
    // and it has not given back what was the other's
    expect(await tryAcquireLock(db, 'stolen', { ttlMs })).toBeNull()
    expect(ports.clock.pending()).toBe(0)
  })

  it("passes the caller's abort on", async () => {
    const { db } = given()
    const controller = new AbortController()
    const work = withLock(
      db,
      driven(),
      'outer',
      { ttlMs, signal: controller.signal },
      async (_lock, signal) => {
        controller.abort(new Error('stop'))
        signal.throwIfAborted()
      },
    )
    await expect(work).rejects.toThrow('stop')
    expect(await tryAcquireLock(db, 'outer', { ttlMs })).not.toBeNull()
  })
})

describeOnEveryDriver(
  'withLock when the database goes away',
  (given) => {
    it('counts the lock as lost at its end, before the database would give it to another (Q6)', async () => {
      const ports = driven()
      const warned: string[] = []
      const log = { ...silentLog, warn: (_facts: object, message: string) => void warned.push(message) }
      const db = given().another()
      const askedAt = ports.clock.now()
      const lost = withLock(db, { ...ports, log }, 'gone', { ttlMs: 3_000_000 }, async (_lock, signal) => {
        await db.close()
        await ports.clock.advance(2_999_999)
        expect(signal.aborted).toBe(false)
        await ports.clock.advance(1)
        expect(signal.aborted).toBe(true)
        expect(ports.clock.now()).toBe(askedAt + 3_000_000)
      })
      await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' })
      await vi.waitFor(() => expect(warned.filter((line) => line.includes('renewed'))).toHaveLength(2), {
        timeout: 5000,
      })
      expect(warned.at(-1)).toContain('given back')
      // the database still holds it: the process gave up first
      expect(await tryAcquireLock(given().db, 'gone', { ttlMs })).toBeNull()
    })
  },
  { needs: ['sessions'] },
)
