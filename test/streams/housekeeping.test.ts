import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { startHousekeeping, type Housekeeping } from '../../src/node/housekeeping.ts'
import { configureStream } from '../../src/streams/configure-stream.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import type { Retention } from '../../src/streams/stream-info.ts'
import { silentLog } from '../../src/system-ports.ts'
import { createAgenda } from '../../src/wakes/agenda.ts'
import type { WakeMode } from '../../src/wakes/modes.ts'
import { eventually } from '../contract/support/eventually.ts'
import { countStatements, type CountingDb } from '../delivery/support/counting-db.ts'
import { createDrivenClock, type DrivenClock } from '../support/clock.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const minuteMs = 60_000
const hourMs = 3_600_000

let database: TestDatabase
let db: Db
let stream = ''
let count = 0
let clock: DrivenClock
let spy: CountingDb
let housekeeping: Housekeeping
const listeners = new Set<(subject: 'all' | `s${number}` | `q${number}`) => void>()

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
  clock = createDrivenClock()
  spy = countStatements(db)
})
afterEach(async () => {
  await housekeeping.stop()
  await configureStream(db, stream, { ageMs: null, count: null })
})

function start(mode: WakeMode = 'listening'): void {
  housekeeping = startHousekeeping({
    db: spy.db,
    ports: { clock, log: silentLog, random: Math.random },
    forwarder: {
      mode,
      onMode: () => () => {},
      unasked: false,
      agenda: createAgenda(clock),
      onWake(fn) {
        listeners.add(fn)
        return () => void listeners.delete(fn)
      },
    },
  })
}

const wake = (subject: 's1' | 'q1' = 's1'): void => listeners.forEach((listener) => listener(subject))
/** How often it has looked for what is too old. */
const looks = (): number => spy.statements.filter((text) => text.includes('mature as')).length
const left = async (): Promise<number[]> => (await readEvents(db, stream)).events.map(({ offset }) => offset)

async function publish(retention: Partial<Retention>): Promise<number[]> {
  await configureStream(db, stream, retention)
  const events = [1, 2, 3].map(() => ({ type: 't', dataText: '1' }))
  return (await publishEvents(db, stream, events)).offsets
}

/** The run that has begun is over: it has set the time of the next, or none. */
async function hasLooked(times: number): Promise<void> {
  await eventually(() => {
    expect(looks()).toBe(times)
    // the last thing that a run does
    expect(spy.statements.at(-1)).toContain('attempts')
  })
  await eventually(() => expect(asked).toBe(answered))
}

let asked = 0
let answered = 0
beforeEach(() => {
  asked = answered = 0
  spy.before(() => void (asked += 1))
  spy.after(() => void (answered += 1))
})

describe('housekeeping', () => {
  it('looks a minute after a publish, and makes no statement while nothing happens', async () => {
    start()
    const offsets = await publish({ count: 1 })
    for (let n = 0; n < 5; n++) wake()
    await clock.advance(minuteMs - 1)
    expect(spy.statements).toEqual([])
    await clock.advance(1)
    await hasLooked(1)
    expect(await left()).toEqual(offsets.slice(2))
    await clock.advance(24 * hourMs)
    expect(looks()).toBe(1)
    expect(clock.pending()).toBe(0)
  })

  it('is not called by what is none of a stream’s', async () => {
    start()
    await clock.advance(minuteMs)
    // the first look comes a minute after the start, whatever happens
    await hasLooked(1)
    wake('q1')
    await clock.advance(10 * minuteMs)
    expect(looks()).toBe(1)
  })

  it('looks at most once a minute, and again for what came while it looked', async () => {
    start()
    await publish({ count: 1 })
    let during = true
    spy.after(() => {
      answered += 1
      if (during) wake()
      during = false
    })
    wake()
    await clock.advance(minuteMs)
    await hasLooked(1)
    await eventually(() => expect(clock.nextIn()).toBe(minuteMs))
    await clock.advance(minuteMs - 1)
    expect(looks()).toBe(1)
    await clock.advance(1)
    await hasLooked(2)
  })

  it('looks again when something becomes old enough, though nothing was published', async () => {
    start()
    await publish({ ageMs: hourMs })
    wake()
    await clock.advance(minuteMs)
    await eventually(() => expect(clock.nextIn()).toBeGreaterThan(hourMs - minuteMs))
    expect(clock.nextIn()).toBeLessThanOrEqual(hourMs)
    await db.drizzle.execute(
      sql`update ${db.tables.horizonMarks} set at = at - ${hourMs + 1} * interval '1 millisecond'`,
    )
    await clock.advance(clock.nextIn()!)
    await eventually(async () => expect(await left()).toEqual([]))
  })

  it('tries again a minute after the database has failed it', async () => {
    start()
    const offsets = await publish({ count: 1 })
    let fails = true
    spy.before(() => {
      asked += 1
      if (!fails) return
      fails = false
      throw new Error('the database is away')
    })
    wake()
    await clock.advance(minuteMs)
    await eventually(() => expect(clock.nextIn()).toBe(minuteMs))
    expect(await left()).toHaveLength(3)
    await clock.advance(minuteMs)
    await eventually(async () => expect(await left()).toEqual(offsets.slice(2)))
  })

  it('N4: looks every ten minutes where no wakes arrive', async () => {
    start('polling')
    const offsets = await publish({ count: 1 })
    await clock.advance(minuteMs)
    await hasLooked(1)
    for (let look = 2; look <= 4; look++) {
      await eventually(() => expect(clock.nextIn()).toBeGreaterThan(7 * minuteMs))
      expect(clock.nextIn()).toBeLessThanOrEqual(11 * minuteMs)
      await clock.advance(clock.nextIn()!)
      await hasLooked(look)
    }
    expect(await left()).toEqual(offsets.slice(2))
  })

  it('stops for good, and waits for the statement that is on its way', async () => {
    start()
    await publish({ count: 1 })
    wake()
    await clock.advance(minuteMs)
    await housekeeping.stop()
    expect(asked).toBe(answered)
    const made = spy.statements.length
    wake()
    await clock.advance(24 * hourMs)
    expect(spy.statements).toHaveLength(made)
    expect(clock.pending()).toBe(0)
    expect(listeners.size).toBe(0)
  })
})
