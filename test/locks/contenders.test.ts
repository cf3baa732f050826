import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { acquireLock } from '../../src/locks/acquire.ts'
import { releaseLock, renewLock } from '../../src/locks/hold.ts'
import type { Lock } from '../../src/locks/lock.ts'
import { tryAcquireLock } from '../../src/locks/try-acquire.ts'
import { systemClock } from '../../src/system-ports.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'

/** What contender `who` does next. */
type Step = { who: number; act: 'take' | 'renew' | 'release' | 'expire' }

const step: fc.Arbitrary<Step> = fc.record({
  who: fc.nat({ max: 3 }),
  act: fc.constantFrom('take', 'take', 'renew', 'release', 'expire'),
})

const ttlMs = 60_000
const real = { clock: systemClock, random: Math.random }

describeOnEveryDriver('contenders for a lock', (given, binding) => {
  let round = 0

  it('agree with a model in every order of taking, renewing, releasing and expiry (Q4)', async () => {
    const { db } = given()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
        const name = `model-${round++}`
        const held: (Lock | undefined)[] = []
        let holder: number | undefined
        let highest = 0
        for (const { who, act } of steps) {
          const mine = held[who]
          if (act === 'take') {
            const lock = await tryAcquireLock(db, name, { ttlMs })
            expect(lock === null).toBe(holder !== undefined)
            if (lock === null) continue
            expect(lock.fence).toBeGreaterThan(highest)
            highest = lock.fence
            held[who] = lock
            holder = who
          } else if (act === 'expire') {
            await runQuery(
              db,
              sql`update ${db.tables.locks} set until = clock_timestamp() where name = ${name}`,
            )
            holder = undefined
          } else if (mine !== undefined) {
            const holds = holder === who
            if (act === 'renew') expect((await renewLock(db, mine, { ttlMs })) !== null).toBe(holds)
            else expect(await releaseLock(db, mine)).toBe(holds)
            if (act === 'release' && holds) holder = undefined
          }
        }
      }),
      { numRuns: binding.name === 'node-postgres' ? 40 : 8 },
    )
  }, 60_000)
})

describeOnEveryDriver(
  'many contenders at once',
  (given, binding) => {
    // over HTTP each statement is a session of its own, and slow: it is the same statement
    const enough = ['neon-http', 'neon-fetch'].includes(binding.name) ? 9 : 30
    it('hold the lock one at a time, with ascending fences, releases and expiries mixed (Q4)', async () => {
      const { db } = given()
      await runQuery(
        db,
        sql`create table public.held (fence bigint, enter_at timestamptz, leave_at timestamptz)`,
      )
      const contenders = Array.from({ length: 4 }, () => given().another())
      const fences: number[] = []
      try {
        await Promise.all(
          contenders.flatMap((own, index) =>
            [0, 1, 2].map((twin) => contend(own, index * 3 + twin, enough, fences)),
          ),
        )
      } finally {
        await Promise.all(contenders.map((own) => own.close()))
      }
      expect(fences.length).toBeGreaterThanOrEqual(enough)
      expect(new Set(fences).size).toBe(fences.length)
      const [overlap] = await runQuery<{ overlaps: string; disorder: string }>(
        db,
        sql`select
          (select count(*) from public.held a join public.held b on a.fence < b.fence and b.enter_at < a.leave_at)::text
            as overlaps,
          (select count(*) from public.held a join public.held b on a.fence < b.fence and b.enter_at < a.enter_at)::text
            as disorder`,
      )
      expect(overlap).toEqual({ overlaps: '0', disorder: '0' })
    }, 60_000)
  },
  { needs: ['sessions'] },
)

/** Takes the lock again and again; every third time it dies with it, so that it runs out. */
async function contend(db: Db, seed: number, enough: number, fences: number[]): Promise<void> {
  for (let turn = seed; fences.length < enough; turn++) {
    const ttl = { ttlMs: turn % 3 === 0 ? 100 : 2000 }
    const lock = await acquireLock(db, real, 'contended', { ...ttl, waitMs: 30_000 })
    if (lock === null) throw new Error('nobody gave the lock back')
    fences.push(lock.fence)
    await enter(db, lock)
    if (turn % 3 !== 0) await releaseLock(db, lock)
  }
}

/**
 * Notes, by the database's clock, from when and until when the lock was certainly held: only as long as
 * its row still says so in the statement that makes the note.
 */
async function enter(db: Db, lock: Lock): Promise<void> {
  await runQuery(
    db,
    sql`insert into public.held (fence, enter_at, leave_at)
      select l.fence, l.acquired_at, l.acquired_at from ${db.tables.locks} l where l.token = ${lock.token}::uuid`,
  )
  await runQuery(
    db,
    sql`update public.held h set leave_at = least(clock_timestamp(), l.until)
      from ${db.tables.locks} l where l.token = ${lock.token}::uuid and h.fence = l.fence`,
  )
}
