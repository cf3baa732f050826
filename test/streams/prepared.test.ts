import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { findStream } from '../../src/streams/find-stream.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

let database: TestDatabase
let millrace: Millrace
let client: pg.Client

beforeEach(async () => {
  database = await createMigratedDatabase()
  millrace = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})
afterEach(async () => {
  await client.end()
  await millrace.close()
  await database.drop()
})

/** Appends to `s` in a transaction that is prepared, and neither committed nor rolled back. */
async function prepare(data: string): Promise<void> {
  await client.query('begin')
  await client.query(
    `select millrace.append('s', array['t'], array[null]::text[], array[$1], array[null]::text[], null, null)`,
    [data],
  )
  await client.query(`prepare transaction 'two-phase'`)
}

/** A subscription that waits for a wake: it has read all there is. */
async function waiting(): Promise<{ next: Promise<IteratorResult<{ data: unknown }>> }> {
  const stream = millrace.stream('s')
  const after = await stream.publish({ type: 't', data: 0 })
  const subscription = stream.consumer('c').subscribe({ after })
  expect(await subscription.tryNext()).toBeNull()
  await millrace.forwarder.waitFor('listening')
  return { next: subscription.next() }
}

describe('a publish in a transaction that is prepared', () => {
  it('S1: holds back what came after it, and its commit alone releases both, though it wakes nobody', async () => {
    const stream = millrace.stream('s')
    const after = await stream.publish({ type: 't', data: 0 })
    const subscription = stream.consumer('c').subscribe({ after })
    await prepare('1')
    await stream.publish({ type: 't', data: 2 })
    expect(await stream.read({ after })).toMatchObject({ events: [], held: true })
    const next = subscription.next()
    await client.query(`commit prepared 'two-phase'`)
    expect((await next).value).toMatchObject({ data: 1 })
    expect((await subscription.next()).value).toMatchObject({ data: 2 })
  })

  it('S1: with nothing after it is seen by reading, and by who waits once the stream is woken', async () => {
    const { next } = await waiting()
    await prepare('1')
    await client.query(`commit prepared 'two-phase'`)
    expect((await millrace.stream('s').read()).events.map(({ data }) => data)).toEqual([0, 1])
    await client.query(`select millrace.wake_stream(id) from millrace.streams where name = 's'`)
    expect((await next).value).toMatchObject({ data: 1 })
  })

  it('cannot be one that wakes: Postgres refuses to prepare it', async () => {
    await millrace.stream('s').publish({ type: 't', data: 0 })
    await client.query('begin')
    await client.query('select millrace.wake_stream($1)', [await findStream(millrace.db, 's')])
    await expect(client.query(`prepare transaction 'two-phase'`)).rejects.toMatchObject({ code: '0A000' })
  })
})
