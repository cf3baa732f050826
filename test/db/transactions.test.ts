import { sql } from 'drizzle-orm'
import { pgSchema, text } from 'drizzle-orm/pg-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'
import { writes } from './support/writes.ts'

const within = { timeout: 20_000, interval: 20 }

describeOnEveryDriver(
  'a transaction',
  (given) => {
    let store: Millrace
    beforeAll(() => {
      store = createMillrace({ db: given().db })
    })

    it.each(writes)(
      'takes $name with it: back when it rolls back, there once it commits (Q3)',
      async (write) => {
        await write.prepare?.(store)
        const before = await write.look(store)
        const regret = new Error('changed my mind')
        const rolledBack = store.transaction(async ({ drizzle }) => {
          await write.run(store, drizzle)
          throw regret
        })
        await expect(rolledBack).rejects.toBe(regret)
        expect(await write.look(store)).toEqual(before)
        await store.transaction(({ drizzle }) => write.run(store, drizzle))
        expect(await write.look(store)).not.toEqual(before)
      },
    )

    it('takes a notification with it (N1)', async () => {
      const heard: string[] = []
      const listener = store.listen('news')
      const reading = (async () => {
        for await (const value of listener) if (value.kind === 'notification') heard.push(value.payload)
      })()
      await listener.ready
      await store
        .transaction(async ({ drizzle }) => {
          await store.notify('news', 'rolled back', { tx: drizzle })
          throw new Error('changed my mind')
        })
        .catch(() => {})
      await store.transaction(({ drizzle }) => store.notify('news', 'committed', { tx: drizzle }))
      await vi.waitFor(() => expect(heard).toEqual(['committed']), within)
      listener.close()
      await reading
    })
  },
  { needs: ['interactiveTx'] },
)

/** The caller's own; the search path of a test database is empty, so its schema is named. */
const table = pgSchema('shop').table('orders', { id: text('id').primaryKey() })

describeOnEveryDriver('a batch', (given, { capabilities }) => {
  let store: Millrace
  beforeAll(async () => {
    store = createMillrace({ db: given().db, pollMinMs: 50 })
    await store.db.drizzle.execute(sql`create schema if not exists shop`)
    await store.db.drizzle.execute(sql`drop table if exists shop.orders`)
    await store.db.drizzle.execute(sql`create table shop.orders (id text primary key)`)
  })
  const stored = async (): Promise<string[]> =>
    (await store.db.drizzle.select().from(table).orderBy(table.id)).map(({ id }) => id)

  it('commits every write of one statement together, and gives each its answer', async () => {
    const all = writes.filter(({ single }) => single)
    for (const write of all) await write.prepare?.(store)
    const before = await Promise.all(all.map((write) => write.look(store)))
    const answers = await store.batch((tx) => all.map((write) => write.run(store, tx)))
    const after = await Promise.all(all.map((write) => write.look(store)))
    for (const [index, write] of all.entries()) {
      expect({ [write.name]: after[index] }).not.toEqual({ [write.name]: before[index] })
    }
    expect(answers[0]).toEqual(expect.any(Number))
  })

  it("commits the caller's own rows with them, in the order given, and decodes them alike", async () => {
    const [inserted, offset, rows] = await store.batch((tx) => [
      tx.insert(table).values({ id: 'o_1' }).returning(),
      store.stream('orders').publish({ type: 'order.created', data: 'o_1' }, { tx, idempotencyKey: 'o_1' }),
      tx.select().from(table),
    ])
    expect(inserted).toEqual([{ id: 'o_1' }])
    expect(rows).toEqual([{ id: 'o_1' }])
    expect((await store.stream('orders').read({ after: offset - 1 })).events).toMatchObject([
      { data: 'o_1', offset },
    ])
  })

  it('leaves nothing of any when one fails, whichever it is (Q3)', async () => {
    const count = (await store.stream('orders').read()).events.length
    const twice = store.batch((tx) => [
      store.stream('orders').publish({ type: 'order.created', data: 'o_2' }, { tx }),
      tx.insert(table).values({ id: 'o_2' }),
      tx.insert(table).values({ id: 'o_1' }),
      store.queue('mails').send({ data: 'o_2' }, { tx }),
    ])
    await expect(twice).rejects.toThrow()
    const invalid = store.batch((tx) => [
      tx.insert(table).values({ id: 'o_3' }),
      store.stream('orders').publish({ type: '', data: 1 }, { tx }),
    ])
    await expect(invalid).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await stored()).toEqual(['o_1'])
    expect((await store.stream('orders').read()).events).toHaveLength(count)
    expect(await store.queue('mails').stats()).toBeUndefined()
  })

  it.each(writes.filter(({ single }) => !single))(
    'refuses $name, which takes several statements',
    async (write) => {
      await write.prepare?.(store)
      const refused = store.batch((tx) => [tx.insert(table).values({ id: 'o_4' }), write.run(store, tx)])
      await expect(refused).rejects.toMatchObject({ code: 'TRANSACTION_UNSUPPORTED' })
      expect(await stored()).toEqual(['o_1'])
    },
  )

  it.each(writes)('refuses $name without its tx, which would commit on its own', async (write) => {
    await write.prepare?.(store)
    const before = await write.look(store)
    const refused = store.batch((tx) => [
      tx.insert(table).values({ id: 'o_5' }),
      write.run(store, undefined as never),
    ])
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'tx' } })
    expect(await stored()).toEqual(['o_1'])
    expect(await write.look(store)).toEqual(before)
  })

  it('of nothing, and of a write with nothing to do, is legal', async () => {
    expect(await store.batch(() => [])).toEqual([])
    expect(await store.batch((tx) => [store.queue('mails').ack([], { tx })])).toEqual([[]])
  })

  it('wakes readers after the commit', async () => {
    const subscription = store.stream('woken').consumer('c').subscribe()
    const first = subscription.next()
    if (capabilities.listen) await store.forwarder.waitFor('listening')
    await store.batch((tx) => [store.stream('woken').publish({ type: 'a', data: 1 }, { tx })])
    expect((await first).value).toMatchObject({ data: 1 })
    await subscription.return?.()
  })

  afterAll(async () => {
    await store.db.drizzle.execute(sql`drop table if exists shop.orders`)
  })
})
