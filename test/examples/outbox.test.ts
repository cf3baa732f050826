import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { payOrder, placeOrder, type Order } from '../../examples/outbox/orders.ts'
import { createNeonHttpDb } from '../../src/db/drivers/neon-http.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

/** A database with the example's table where an ordinary search path leads. */
async function shop(connect: (url: string) => Promise<Db>): Promise<Millrace> {
  const database = await createMigratedDatabase()
  open.push(() => database.drop())
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(
    'create table public.orders (id text primary key, total_cents integer not null, state text not null)',
  )
  await client.query(`alter database ${new URL(database.url).pathname.slice(1)} set search_path to public`)
  await client.end()
  const millrace = createMillrace({ db: await connect(database.url) })
  open.push(() => millrace.close())
  return millrace
}

async function overNeonHttp(url: string): Promise<Db> {
  const gateway = await startGateway(url)
  open.push(() => gateway.close())
  return createNeonHttpDb({ url, gateway })
}

const order: Order = { id: 'o_1', totalCents: 4200, state: 'placed' }

async function told(millrace: Millrace): Promise<unknown[]> {
  const { events } = await millrace.stream('orders').read()
  return events.map(({ type, key, data }) => ({ type, key, data }))
}

describe.each([
  ['node-postgres', async (url: string) => createNodePostgresDb({ url })],
  ['neon-http', overNeonHttp],
])('the outbox example over %s', (_, connect) => {
  it('places an order, its event and its job together, or none of them (Q3)', async () => {
    const millrace = await shop(connect)
    expect(await placeOrder(millrace, order)).toEqual(expect.any(Number))
    await expect(placeOrder(millrace, order)).rejects.toThrow()
    expect(await told(millrace)).toEqual([{ type: 'order.placed', key: 'o_1', data: order }])
    expect(await millrace.queue('mails').stats()).toMatchObject({ ready: 1 })
  })
})

describe('the outbox example in a transaction', () => {
  it('tells once that an order was paid, however many try at once', async () => {
    const millrace = await shop(async (url) => createNodePostgresDb({ url }))
    await placeOrder(millrace, order)
    const paid = await Promise.all([1, 2, 3].map(() => payOrder(millrace, 'o_1')))
    expect(paid.toSorted()).toEqual([false, false, true])
    expect(await payOrder(millrace, 'o_2')).toBe(false)
    expect(await told(millrace)).toMatchObject([{ type: 'order.placed' }, { type: 'order.paid' }])
  })
})
