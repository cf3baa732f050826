import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { saveOffset, seekOffset } from '../../src/streams/consumer-offsets.ts'
import { configureStream } from '../../src/streams/configure-stream.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { runRetention } from '../../src/streams/retention.ts'
import { trimStream } from '../../src/streams/trim-stream.ts'
import { systemClock } from '../../src/system-ports.ts'
import { holdTransaction } from '../contract/support/held.ts'
import { countStatements } from '../delivery/support/counting-db.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const rowCount = process.env.MILLRACE_LONG_TESTS === '1' ? 1_000_000 : 100_000
const hourMs = 3_600_000
const event = { type: 't', dataText: '1' }

let database: TestDatabase
let db: Db
let stream = ''
let count = 0

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})
beforeEach(() => {
  stream = `kept-${++count}`
})

const publish = async (n: number): Promise<number[]> =>
  (
    await publishEvents(
      db,
      stream,
      Array.from({ length: n }, () => event),
    )
  ).offsets
const left = async (): Promise<number[]> =>
  (await readEvents(db, stream, { limit: 1000 })).events.map(({ offset }) => offset)
const run = () => runRetention(db, { clock: systemClock })
/** Lets so much time pass since the horizons were noted. */
const age = (ms: number) =>
  db.drizzle.execute(sql`update ${db.tables.horizonMarks} set at = at - ${ms} * interval '1 millisecond'`)

function say(what: string, tookMs: number[]): void {
  const sorted = tookMs.toSorted((a, b) => a - b)
  const [middle, most] = [sorted[sorted.length >> 1], sorted.at(-1)].map((ms) => ms?.toFixed(1))
  process.stderr.write(`${what} ${sorted.length} publishes took ${middle} ms (median), at most ${most} ms\n`)
}

describe('retention', () => {
  it('by count keeps the newest', async () => {
    const offsets = await publish(10)
    await configureStream(db, stream, { count: 3 })
    expect((await run()).deleted).toBe(7)
    expect(await left()).toEqual(offsets.slice(7))
    expect((await run()).deleted).toBe(0)
  })

  it('leaves to another worker what that one is just removing, and does not wait for it', async () => {
    const offsets = await publish(6)
    await configureStream(db, stream, { count: 1 })
    const held = await holdTransaction(db)
    expect(await trimStream(db, stream, offsets[1]!, { tx: held.tx.drizzle })).toBe(2)
    expect((await run()).deleted).toBe(3)
    await held.rollback()
    expect((await run()).deleted).toBe(2)
    expect(await left()).toEqual(offsets.slice(5))
  })

  it('by age counts from when readers could have seen an event, not from its own time', async () => {
    await configureStream(db, stream, { ageMs: hourMs })
    const [early = 0] = await publish(1)
    const held = await holdTransaction(db)
    const [late = 0] = (await publishEvents(db, stream, [event], { tx: held.tx.drizzle })).offsets
    expect((await run()).nextDueInMs).toBeGreaterThan(hourMs - 60_000)
    await age(hourMs + 1)
    // the transaction has been open for over an hour, and commits only now
    await db.drizzle.execute(
      sql`update ${db.tables.events} set published_at = published_at - interval '2 hours'`,
    )
    await held.commit()
    expect((await run()).deleted).toBe(1)
    expect(await left()).toEqual([late])
    expect(early).toBeLessThan(late)
    await age(hourMs - 60_000)
    expect((await run()).deleted).toBe(0)
    await age(60_001)
    expect((await run()).deleted).toBe(1)
  })

  it('with keepUnread waits for every consumer, and removes nothing just because it was read', async () => {
    await configureStream(db, stream, { ageMs: hourMs, keepUnread: true })
    const offsets = await publish(4)
    await saveOffset(db, { stream, consumer: 'fast' }, offsets[3]!)
    await saveOffset(db, { stream, consumer: 'slow' }, offsets[1]!)
    expect((await run()).deleted).toBe(0)
    expect(await left()).toEqual(offsets)
    await age(hourMs + 1)
    expect((await run()).deleted).toBe(2)
    expect(await left()).toEqual(offsets.slice(2))
    await saveOffset(db, { stream, consumer: 'slow' }, offsets[3]!)
    expect((await run()).deleted).toBe(2)
  })

  it('with keepUnread spares what a consumer wants who comes, or goes back, after its bound was found', async () => {
    await configureStream(db, stream, { count: 0, keepUnread: true })
    const spy = countStatements(db)
    const between = (work: () => Promise<unknown>): void => {
      let due = true
      spy.before(async (text) => {
        if (!due || !text.includes('trim_events')) return
        due = false
        await work()
      })
    }
    const offsets = await publish(4)
    const id = { stream, consumer: 'here' }
    await saveOffset(db, id, offsets[3]!)
    between(() => seekOffset(db, id, offsets[1]!))
    expect((await runRetention(spy.db, { clock: systemClock })).deleted).toBe(2)
    expect(await left()).toEqual(offsets.slice(2))
    await saveOffset(db, id, offsets[3]!)
    between(() => saveOffset(db, { stream, consumer: 'new' }, 0))
    expect((await runRetention(spy.db, { clock: systemClock })).deleted).toBe(0)
    expect(await left()).toEqual(offsets.slice(2))
  })

  it('forgets expired idempotency keys, however many, by their index', async () => {
    await publish(1)
    await db.drizzle
      .execute(sql`insert into ${db.tables.publishKeys} (stream_id, key, content_hash, expires_at)
      select 1, 'k' || n, 'h', now() + interval '1 hour' * (case when n <= 2500 then -1 else 1 end)
      from generate_series(1, 20000) n`)
    await db.drizzle.execute(sql`analyze ${db.tables.publishKeys}`)
    const plan = (await db.drizzle.execute(sql`explain select 1 from ${db.tables.publishKeys} o
      where o.expires_at < now() - interval '30 minutes' order by o.expires_at limit 1000`)) as {
      rows: object[]
    }
    expect(JSON.stringify(plan.rows)).toContain('publish_keys_expires')
    await run()
    expect(await db.drizzle.$count(db.tables.publishKeys)).toBe(17_500)
  })

  it(
    `clears ${rowCount} rows from two instances at once, while publishers go on`,
    { timeout: 600_000 },
    async () => {
      const [first = 0] = await publish(1)
      await db.drizzle
        .execute(sql`insert into ${db.tables.events} (stream_id, "offset", type, data, published_at)
      select s.id, nextval('millrace.event_offset'), 't', '1', now()
      from ${db.tables.streams} s, generate_series(1, ${rowCount}) where s.name = ${stream}`)
      await configureStream(db, stream, { count: 10 })
      const other = createNodePostgresDb({ url: database.url })
      let cleared = false
      const clearing = Promise.all(
        [db, other].map((instance) => runRetention(instance, { clock: systemClock, budgetMs: 500_000 })),
      ).finally(() => (cleared = true))
      const tookMs: number[] = []
      const from = performance.now()
      while (!cleared) {
        const before = performance.now()
        await publishEvents(other, stream, [event])
        tookMs.push(performance.now() - before)
      }
      const reports = await clearing
      say(`${rowCount} rows were cleared in ${Math.round(performance.now() - from)} ms, meanwhile`, tookMs)
      expect(tookMs.length).toBeGreaterThan(10)
      // whoever waited for the clearing would have waited for all of it, or for a step of it each time
      expect(Math.max(...tookMs)).toBeLessThan(10_000)
      expect(reports.reduce((sum, { deleted }) => sum + deleted, 0)).toBeGreaterThanOrEqual(rowCount - 10)
      await run()
      const kept = await left()
      expect(kept).toHaveLength(10)
      expect(kept[0]).toBeGreaterThan(first + rowCount - 10)
      await other.close()
    },
  )
})
