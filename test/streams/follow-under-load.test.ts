import { sql } from 'drizzle-orm'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const publishers = 20
const publishesEach = 40

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

async function openStore(): Promise<{ database: TestDatabase; db: Db }> {
  const database = await createMigratedDatabase()
  const db = createNodePostgresDb({ url: database.url, maxConnections: publishers + 4 })
  cleanUps.push(
    () => database.drop(),
    () => db.close(),
  )
  return { database, db }
}

/** A session that has written something of its own and stays open: S2 says that it delays nobody. */
async function openUnrelatedTransaction(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  cleanUps.push(() => client.end())
  await client.query('create table public.unrelated (n integer)')
  await client.query('begin')
  await client.query('insert into public.unrelated values (1)')
}

/** Publishes in every way there is: at once, or in transactions that dawdle after it; one in ten rolls back. */
async function publishAll(db: Db, publisher: number, committed: number[]): Promise<void> {
  for (let n = 0; n < publishesEach; n++) {
    const event = { type: 'load.test', key: `k${publisher}`, dataText: String(n) }
    if (n % 2 === 0) {
      committed.push(...(await publishEvents(db, 'load', [event])).offsets)
      continue
    }
    const rollsBack = n % 10 === 1
    const offsets = await publishAndDawdle(db, event, rollsBack)
    if (!rollsBack) committed.push(...offsets)
  }
}

async function publishAndDawdle(
  db: Db,
  event: Parameters<typeof publishEvents>[2][number],
  rollsBack: boolean,
): Promise<number[]> {
  let offsets: number[] = []
  const done = db.transaction(async (tx) => {
    offsets = (await publishEvents(db, 'load', [event], { tx: tx.drizzle })).offsets
    await tx.drizzle.execute(sql`select pg_catalog.pg_sleep(pg_catalog.random() * 0.03)`)
    if (rollsBack) throw new Error('changed my mind')
  })
  if (rollsBack) await expect(done).rejects.toThrow('changed my mind')
  else await done
  return offsets
}

/** Follows the stream until it has read everything after the publishers are done. */
async function follow(db: Db, isOver: () => boolean): Promise<number[]> {
  const seen: number[] = []
  let after = 0
  for (;;) {
    const wasOver = isOver()
    const page = await readEvents(db, 'load', { after, limit: 50 })
    seen.push(...page.events.map((event) => event.offset))
    after = page.next
    if (wasOver && page.events.length === 0 && !page.more) return seen
  }
}

async function runLoad(db: Db): Promise<{ committed: number[]; seen: number[] }> {
  const committed: number[] = []
  let over = false
  const reading = follow(db, () => over)
  await Promise.all(
    Array.from({ length: publishers }, (_, publisher) => publishAll(db, publisher, committed)),
  )
  over = true
  return { committed: committed.toSorted((a, b) => a - b), seen: await reading }
}

/** The horizon taken out: every number that was drawn counts as decided. */
const noHorizon = `
  create or replace function millrace.horizon(p_stream_id integer, out o_last bigint, out o_horizon bigint)
  language plpgsql volatile as $$
  begin
    o_last := millrace.last_offset();
    o_horizon := o_last;
  end
  $$`

describe('a reader that follows a stream under load', () => {
  it('S1, S2: sees every committed event once and in order, beside an unrelated open transaction', async () => {
    const { database, db } = await openStore()
    await openUnrelatedTransaction(database.url)
    const { committed, seen } = await runLoad(db)
    expect(committed).toHaveLength(publishers * (publishesEach - publishesEach / 10))
    expect(seen).toEqual(committed)
  })

  it('would lose events without the horizon: the test above can fail', async () => {
    const { db } = await openStore()
    await db.drizzle.execute(sql.raw(noHorizon))
    const { committed, seen } = await runLoad(db)
    expect(seen).toEqual(seen.toSorted((a, b) => a - b))
    expect(committed.filter((offset) => !seen.includes(offset)).length).toBeGreaterThan(0)
  })
})
