import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { listHorizonHolders } from '../../src/streams/horizon-holders.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
  for (const stream of ['orders', 'other']) await publishEvents(db, stream, [{ type: 'a', dataText: '1' }])
})
afterAll(async () => {
  await db.close()
  await database.drop()
})

/** Runs `work` while a session of the given name has published to `orders` and not committed. */
async function whilePublishing(
  application: string,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: database.url, application_name: application })
  await client.connect()
  await client.query('begin')
  await client.query(`select * from "millrace"."append"('orders', array['a'], array[null]::text[], array['2'],
    array[null]::text[], null, null)`)
  try {
    await work(client)
  } finally {
    await client.query('rollback').catch(() => {})
    await client.end()
  }
}

describe('who holds the horizon back', () => {
  it('is nobody when all is decided, nor a transaction that has not published (S2)', async () => {
    const idle = new pg.Client({ connectionString: database.url })
    await idle.connect()
    await idle.query('begin')
    await idle.query('select * from "millrace"."events" limit 1')
    expect(await listHorizonHolders(db)).toEqual([])
    await idle.end()
  })

  it('is told with its pid, age, application and query, for the stream that it holds', async () => {
    await whilePublishing('slow-job', async (client) => {
      const pid = Number((await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid)
      const [holder, ...more] = await listHorizonHolders(db)
      expect(more).toEqual([])
      expect(holder).toMatchObject({
        stream: 'orders',
        pid,
        prepared: null,
        application: 'slow-job',
        state: 'idle in transaction',
        query: 'select pg_backend_pid() as pid',
      })
      expect(holder?.ageMs).toBeGreaterThanOrEqual(0)
      expect(holder?.user).not.toBe('')
      const { horizon } = await readEvents(db, 'orders')
      expect(horizon).toBeLessThan((await readEvents(db, 'other')).horizon ?? 0)
      expect(await listHorizonHolders(db, 'other')).toEqual([])
      expect(await listHorizonHolders(db, 'orders')).toHaveLength(1)
    })
  })

  it('comes the oldest first', async () => {
    await whilePublishing('first', () =>
      whilePublishing('second', async () => {
        const names = (await listHorizonHolders(db)).map(({ application }) => application)
        expect(names).toEqual(['first', 'second'])
      }),
    )
  })

  it('may be a prepared transaction, which has no backend', async () => {
    await whilePublishing('preparing', async (client) => {
      await client.query(`prepare transaction 'forgotten'`)
      const holders = await listHorizonHolders(db)
      await client.query(`rollback prepared 'forgotten'`)
      expect(holders).toEqual([
        {
          stream: 'orders',
          pid: null,
          prepared: 'forgotten',
          ageMs: expect.any(Number),
          application: '',
          user: expect.stringMatching(/./),
          state: 'prepared',
          query: '',
        },
      ])
    })
  })

  it('is not the own transaction', async () => {
    await db.transaction(async (tx) => {
      await publishEvents(db, 'orders', [{ type: 'a', dataText: '3' }], { tx: tx.drizzle })
      expect(await listHorizonHolders(tx)).toEqual([])
    })
  })
})
