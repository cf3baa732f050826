import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import pg from 'pg'
import { expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace } from '../../src/millrace.ts'
import { findStream } from '../../src/streams/find-stream.ts'
import { countStatements, kindOf } from '../delivery/support/counting-db.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const streams = 100
const subscribersEach = 10
const rounds = 6
/** By then code is compiled and pools are filled. */
const warmUpRounds = 2
/** Room for chance; what grew by a kilobyte a wake and subscriber would take five times as much. */
const growthBytes = 1024 * 1024

function usedBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

it(
  'S1: 1,000 subscribers of 100 streams share one LISTEN connection, each is woken by its stream alone, and memory stays flat',
  { timeout: 300_000 },
  async ({ onTestFinished }) => {
    const database = await createMigratedDatabase()
    onTestFinished(() => database.drop())
    const outside = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
    onTestFinished(() => outside.close())
    const operator = new pg.Client({ connectionString: database.url })
    await operator.connect()
    onTestFinished(() => operator.end())
    const spy = countStatements(createNodePostgresDb({ url: database.url, applicationName: 'subscribers' }))
    const millrace = createMillrace({ db: spy.db })
    onTestFinished(() => millrace.close())
    const names = Array.from({ length: streams }, (_, n) => `s${n}`)
    const publish = (name: string, round: number) =>
      outside.stream(name).publish({ type: 't', data: { name, round } })
    await Promise.all(names.map((name) => publish(name, 0)))

    let seen = 0
    const wrong: unknown[] = []
    for (const name of names) {
      for (let n = 0; n < subscribersEach; n++) void follow(name, `c${n}`)
    }
    async function follow(name: string, consumer: string): Promise<void> {
      let next = 0
      for await (const { data } of millrace.stream(name).consumer(consumer).subscribe({ buffer: 10 })) {
        const event = data as { name: string; round: number }
        if (event.name !== name || event.round !== next) wrong.push(event)
        next += 1
        seen += 1
      }
    }
    const everyoneHasSeen = (round: number) =>
      vi.waitFor(() => expect(seen).toBe((round + 1) * streams * subscribersEach), {
        timeout: 120_000,
        interval: 10,
      })
    await everyoneHasSeen(0)
    await millrace.forwarder.waitFor('listening')
    const reads = (): number => spy.statements.filter((text) => kindOf(text) === 'read').length
    await outside.stream('nobodys').publish({ type: 't', data: 0 })
    const nobodys = `s${await findStream(outside.db, 'nobodys')}`
    /** Wakes come in the order of the commits: after one of a stream that nobody reads there is none to come. */
    async function quiet(): Promise<void> {
      const heard = new Promise<void>((resolve) => {
        const off = millrace.forwarder.onWake((subject) => {
          if (subject !== nobodys) return
          off()
          resolve()
        })
      })
      await outside.stream('nobodys').publish({ type: 't', data: 0 })
      await heard
      await vi.waitFor(() => expect(spy.underWay()).toBe(0), { timeout: 120_000, interval: 10 })
    }

    async function usedWhenQuiet(): Promise<number> {
      await quiet()
      spy.statements.length = 0
      return usedBytes()
    }

    let before = 0
    for (let round = 1; round <= rounds; round++) {
      spy.statements.length = 0
      await Promise.all(names.map((name) => publish(name, round)))
      await everyoneHasSeen(round)
      if (round === warmUpRounds) before = await usedWhenQuiet()
    }
    const grownBytes = (await usedWhenQuiet()) - before
    process.stderr.write(
      `1,000 subscribers, ${seen} events: the heap grew by ${Math.round(grownBytes / 1024)} KiB\n`,
    )
    expect(wrong).toEqual([])
    expect(grownBytes).toBeLessThan(growthBytes)

    // one stream's publish is two reads to each of its own subscribers, the second finds no more; and nothing to others
    await publish('s42', rounds + 1)
    await vi.waitFor(() => expect(seen).toBe((rounds + 1) * streams * subscribersEach + subscribersEach), {
      timeout: 30_000,
    })
    await quiet()
    expect(reads()).toBe(2 * subscribersEach)
    expect(spy.statements).toHaveLength(2 * subscribersEach)

    const { rows } = await operator.query<{ query: string }>(
      `select query from pg_catalog.pg_stat_activity
        where application_name = 'subscribers' and datname = pg_catalog.current_database()`,
    )
    const listening = rows.filter(
      ({ query }) => !query.includes('read_events') && !query.includes('"streams"'),
    )
    expect(listening).toHaveLength(1)
    expect(rows.length).toBeLessThanOrEqual(11)
  },
)
