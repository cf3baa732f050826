import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db, Executor } from '../../src/db/port.ts'
import { qualified, runQuery } from '../../src/db/run.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { describeOnEveryDriver, type ContractDatabase } from './drivers.ts'
import { holdTransaction } from './support/held.ts'
import { append, publish, read, readData } from './support/streams.ts'

/** Publishers on sessions of their own, so that every driver's reads can be tried against them. */
function publishersOf(given: () => ContractDatabase): () => Db {
  let side: Db | undefined
  beforeAll(() => {
    side = createNodePostgresDb({ url: given().url, maxConnections: 20 })
  })
  afterAll(() => side?.close())
  return () => side!
}

async function withSchema(
  given: () => ContractDatabase,
  schema: string,
  work: (reader: Db, publisher: Db) => Promise<void>,
): Promise<void> {
  const publisher = createNodePostgresDb({ url: given().url, schema })
  const reader = given().another({ schema })
  try {
    await migrate(publisher, { files: await readMigrationFiles() })
    await work(reader, publisher)
  } finally {
    await Promise.all([publisher.close(), reader.close()])
  }
}

describeOnEveryDriver(
  'the horizon',
  (given) => {
    const publishers = publishersOf(given)

    it('withholds what was committed after an open publish, then gives all in order (S1)', async () => {
      const { db } = given()
      await publish(db, 'late', { data: ['0'] })
      const held = await holdTransaction(publishers())
      const [early] = (await append(held.tx, 'late', { data: ['1'] })).offsets
      await publish(db, 'late', { data: ['2'] })
      const page = await read(db, 'late')
      expect(page.rows.map((row) => row.data)).toEqual(['0'])
      expect(page.horizon).toBeLessThan(early!)
      await held.commit()
      expect(await readData(db, 'late')).toEqual(['0', '1', '2'])
    })

    it('moves on when the open publish rolls back (S1)', async () => {
      const { db } = given()
      await publish(db, 'undone', { data: ['0'] })
      const held = await holdTransaction(publishers())
      await append(held.tx, 'undone', { data: ['1'] })
      await publish(db, 'undone', { data: ['2'] })
      expect(await readData(db, 'undone')).toEqual(['0'])
      await held.rollback()
      expect(await readData(db, 'undone')).toEqual(['0', '2'])
    })

    it('is held by the lowest of several publishers, and moves as they end in any order (S1)', async () => {
      const { db } = given()
      const held = [await holdTransaction(publishers()), await holdTransaction(publishers())]
      await publish(db, 'several', { data: ['0'] })
      await append(held[0]!.tx, 'several', { data: ['1'] })
      await publish(db, 'several', { data: ['2'] })
      await append(held[1]!.tx, 'several', { data: ['3'] })
      await append(held[0]!.tx, 'several', { data: ['4'] })
      await publish(db, 'several', { data: ['5'] })
      expect(await readData(db, 'several')).toEqual(['0'])
      await held[0]!.commit()
      expect(await readData(db, 'several')).toEqual(['0', '1', '2'])
      await held[1]!.rollback()
      expect(await readData(db, 'several')).toEqual(['0', '1', '2', '4', '5'])
    })

    it('is released by a rollback to a savepoint, and only of what came after it (S1)', async () => {
      const { db } = given()
      const held = await holdTransaction(publishers())
      await fallBack(held.tx, 'saved')
      await publish(db, 'saved', { data: ['1'] })
      expect(await readData(db, 'saved')).toEqual(['1'])
      await append(held.tx, 'saved', { data: ['2'] })
      await fallBack(held.tx, 'saved')
      await publish(db, 'saved', { data: ['3'] })
      expect(await readData(db, 'saved')).toEqual(['1'])
      await held.commit()
      expect(await readData(db, 'saved')).toEqual(['1', '2', '3'])
    })

    it('is held by a prepared transaction until COMMIT PREPARED (S1)', async (context) => {
      const { db } = given()
      const [setting] = await runQuery<{ n: string }>(
        db,
        sql`select current_setting('max_prepared_transactions') as n`,
      )
      if (setting?.n === '0') context.skip('this server has max_prepared_transactions = 0')
      await publish(db, 'prepared', { data: ['0'] })
      // transaction names are the server's, not the database's
      const id = `contract_${randomUUID()}`
      const session = await publishers().connectDirect()
      await session.execute(`begin;
        select "millrace"."append"('prepared', array['t'], array[null], array['1'], array[null], null, null);
        prepare transaction '${id}'`)
      await session.close()
      const other = await publishers().connectDirect()
      try {
        await publish(db, 'prepared', { data: ['2'] })
        expect(await readData(db, 'prepared')).toEqual(['0'])
      } finally {
        await other.execute(`commit prepared '${id}'`)
        await other.close()
      }
      expect(await readData(db, 'prepared')).toEqual(['0', '1', '2'])
    })

    it('is not held by an open transaction that wrote elsewhere, other streams included (S2)', async () => {
      const { db } = given()
      const held = await holdTransaction(publishers())
      await runQuery(held.tx, sql`insert into ${qualified(held.tx, 'streams')} (name) values ('written')`)
      await append(held.tx, 'elsewhere', { data: ['1'] })
      await runQuery(
        held.tx,
        sql`select pg_advisory_xact_lock(1), pg_advisory_xact_lock_shared(1, 1), pg_advisory_lock(2)`,
      )
      await publish(db, 'undisturbed', { data: ['1', '2'] })
      expect(await readData(db, 'undisturbed')).toEqual(['1', '2'])
      await held.rollback()
    })

    it('is not held by the same stream of another database (S2)', async () => {
      const { db } = given()
      const { streamId } = await publish(db, 'namesake', { data: ['1'] })
      const other = await createMigratedDatabase()
      const foreign = createNodePostgresDb({ url: other.url })
      const held = await holdTransaction(foreign)
      const lock = sql`select pg_advisory_xact_lock_shared(${qualified(db, 'stream_lock_key')}(${streamId}::int), 0)`
      await runQuery(held.tx, lock)
      expect(await readData(db, 'namesake')).toEqual(['1'])
      // the same lock in this database does hold it, so the case above means something
      const here = await holdTransaction(publishers())
      await runQuery(here.tx, lock)
      expect(await readData(db, 'namesake')).toEqual([])
      await Promise.all([held.rollback(), here.rollback()])
      await foreign.close()
      await other.drop()
    })

    it('is 0 while the very first publish of a database is open (S1)', async () => {
      await withSchema(given, 'fresh', async (reader, publisher) => {
        expect(await read(reader, 'first')).toMatchObject({ horizon: 0, last: 0 })
        const held = await holdTransaction(publisher)
        expect((await append(held.tx, 'first', { data: ['1'] })).offsets).toEqual([1])
        // the stream is committed by another only after the open insert of its name is decided
        expect(await read(reader, 'first')).toMatchObject({ horizon: 0, last: 1, rows: [] })
        await held.commit()
        const next = await holdTransaction(publisher)
        await append(next.tx, 'first', { data: ['2'] })
        expect(await read(reader, 'first')).toMatchObject({ horizon: 1, last: 2 })
        await next.commit()
        expect(await readData(reader, 'first')).toEqual(['1', '2'])
      })
    })

    it('survives the wrap of the 31 bits that the lock shows (S1)', async () => {
      await withSchema(given, 'wrapping', async (reader, publisher) => {
        await publish(reader, 'wrap', { data: ['0'] })
        for (const base of [2 ** 31 - 3, 2 ** 32 - 1, 3 * 2 ** 31, 2 ** 33 - 2, 2 ** 52]) {
          await setSequence(publisher, base)
          const held = await holdTransaction(publisher)
          const { offsets } = await append(held.tx, 'wrap', { data: ['1'] })
          expect(offsets).toEqual([base + 1])
          await publish(reader, 'wrap', { data: ['2', '3', '4'] })
          expect(await read(reader, 'wrap', { after: base })).toMatchObject({ horizon: base, rows: [] })
          await held.commit()
          expect(await readData(reader, 'wrap', base)).toEqual(['1', '2', '3', '4'])
        }
      })
    })

    it('of one schema is nothing to another, though names and numbers are the same (S2)', async () => {
      await withSchema(given, 'second', async (reader, publisher) => {
        const held = await holdTransaction(publisher)
        await append(held.tx, 'double', { data: ['"second"'] })
        await publish(given().db, 'double', { data: ['"first"'] })
        expect(await readData(given().db, 'double')).toEqual(['"first"'])
        await held.commit()
        expect(await readData(reader, 'double')).toEqual(['"second"'])
        expect(await readData(given().db, 'double')).toEqual(['"first"'])
      })
    })

    it('lets no event by unseen while many publish, roll back and take their time (S1)', async () => {
      const { db } = given()
      const publisher = publishers()
      await publish(db, 'crowd', { data: ['"start"'] })
      const committed: number[] = []
      let running = true
      const seen = follow(db, 'crowd', () => running)
      await Promise.all(
        Array.from({ length: 12 }, async (_, worker) => {
          for (let round = 0; round < 15; round++) {
            const held = await holdTransaction(publisher)
            const { offsets } = await append(held.tx, 'crowd', { data: [String(worker), String(round)] })
            if ((worker + round) % 4 === 0) await runQuery(held.tx, sql`select pg_sleep(0.005)`)
            if ((worker + round) % 5 === 0) await held.rollback()
            else {
              await held.commit()
              committed.push(...offsets)
            }
          }
        }),
      )
      running = false
      expect((await seen).slice(1)).toEqual(committed.toSorted((a, b) => a - b))
    })
  },
  { needs: ['sessions'] },
)

/** Follows a stream by offset, without pause, until told to stop and nothing is left. */
async function follow(on: Executor, stream: string, more: () => boolean): Promise<number[]> {
  const seen: number[] = []
  for (;;) {
    const last = !more()
    const { rows } = await read(on, stream, { after: seen.at(-1) ?? 0, limit: 50 })
    seen.push(...rows.map((row) => row.offset))
    if (last && rows.length === 0) return seen
  }
}

async function fallBack(tx: Executor, stream: string): Promise<void> {
  const nested = tx.drizzle.transaction(async (drizzle) => {
    await append({ ...tx, drizzle }, stream, { data: ['"undone"'] })
    throw new Error('fall back')
  })
  await nested.catch(() => {})
}

async function setSequence(on: Executor, value: number): Promise<void> {
  await runQuery(on, sql`select setval('"wrapping"."event_offset"', ${value}::bigint)`)
}
