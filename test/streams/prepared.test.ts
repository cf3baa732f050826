import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { findStream } from '../../src/streams/find-stream.ts'
import { eventually } from '../contract/support/eventually.ts'
import { countStatements, kindOf, type CountingDb } from '../delivery/support/counting-db.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

/** All databases of a server share these names. */
const name = `two-phase-${randomUUID()}`
let database: TestDatabase
let millrace: Millrace
let spy: CountingDb
let client: pg.Client

beforeEach(async () => {
  database = await createMigratedDatabase()
  spy = countStatements(createNodePostgresDb({ url: database.url }))
  millrace = createMillrace({ db: spy.db })
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})
afterEach(async () => {
  // a test that failed has left it, and no database with one can be dropped
  await client.query(`rollback prepared '${name}'`).catch(() => {})
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
  await client.query(`prepare transaction '${name}'`)
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
    expect(await subscription.tryNext()).toBeNull()
    await millrace.forwarder.waitFor('listening')
    const next = subscription.next()
    // no wake makes it read so often: it looks by itself
    const looks = (): number => spy.statements.filter((text) => kindOf(text) === 'read').length
    const before = looks()
    await eventually(() => expect(looks() - before).toBeGreaterThan(4))
    await client.query(`commit prepared '${name}'`)
    expect((await next).value).toMatchObject({ data: 1 })
    expect((await subscription.next()).value).toMatchObject({ data: 2 })
  })

  it('S1: with nothing after it is seen by reading, and by who waits once the stream is woken', async () => {
    const { next } = await waiting()
    await prepare('1')
    await client.query(`commit prepared '${name}'`)
    expect((await millrace.stream('s').read()).events.map(({ data }) => data)).toEqual([0, 1])
    await client.query(`select millrace.wake_stream(id) from millrace.streams where name = 's'`)
    expect((await next).value).toMatchObject({ data: 1 })
  })

  it('cannot be one that wakes: Postgres refuses to prepare it', async () => {
    await millrace.stream('s').publish({ type: 't', data: 0 })
    await client.query('begin')
    await client.query('select millrace.wake_stream($1)', [await findStream(millrace.db, 's')])
    await expect(client.query(`prepare transaction '${name}'`)).rejects.toMatchObject({ code: '0A000' })
  })
})
