import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createMillrace, type Millrace, type MillraceOptions } from '../../src/millrace.ts'
import type { Subscription } from '../../src/streams/subscribe.ts'
import { eventually } from '../contract/support/eventually.ts'
import { holdTransaction } from '../contract/support/held.ts'
import { countStatements, kindOf } from '../delivery/support/counting-db.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'

const cleanUps: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

/** A store of its own, reached through a proxy, and a publisher and an operator beside it. */
async function createWorld() {
  const database = await createMigratedDatabase()
  const { hostname, port } = new URL(database.url)
  const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
  const outside = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
  const operator = new pg.Pool({ connectionString: database.url, max: 2 })
  operator.on('error', () => {})
  cleanUps.push(
    () => database.drop(),
    () => proxy.close(),
    () => operator.end(),
    () => outside.close(),
  )
  return {
    proxy,
    outside,
    operator,
    open(options: Partial<MillraceOptions> & { wrap?: (db: Db) => Db } = {}): Millrace {
      const { wrap = (db: Db) => db, ...rest } = options
      const url = proxy.through(database.url)
      const millrace = createMillrace({
        ...{ db: wrap(createNodePostgresDb({ url, applicationName: 'subscriber' })), ...rest },
      })
      cleanUps.push(() => millrace.close())
      return millrace
    },
    publish: (...data: unknown[]) =>
      outside.stream('s').publishMany(data.map((value) => ({ type: 't', data: value }))),
    sessions: async (): Promise<number> => {
      const found = await operator.query(
        `select 1 from pg_catalog.pg_stat_activity where application_name = 'subscriber' and datname = pg_catalog.current_database()`,
      )
      return found.rowCount ?? 0
    },
    terminate: () =>
      operator.query(
        `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
          where application_name = 'subscriber' and datname = pg_catalog.current_database()`,
      ),
  }
}

async function take(subscription: Subscription<{ data: unknown }>, count: number): Promise<unknown[]> {
  const values: unknown[] = []
  while (values.length < count) {
    const { done, value } = await subscription.next()
    if (done === true) break
    values.push(value.data)
  }
  return values
}

describe('a subscription', () => {
  it('replays from the saved offset, then follows, and goes on from there the next time (S8)', async () => {
    const world = await createWorld()
    const millrace = world.open()
    const consumer = millrace.stream('s').consumer('c')
    const offsets = await world.publish(1, 2, 3)
    await consumer.save(offsets[0]!)
    const first = consumer.subscribe()
    expect(first.position).toBeNull()
    expect(await first.save()).toBeNull()
    expect(await consumer.offset()).toBe(offsets[0])
    expect(await take(first, 1)).toEqual([2])
    expect(first.position).toBe(offsets[1])
    // the third is in its buffer by now, but was not yielded
    expect(await first.save()).toBe(offsets[1])
    const next = take(first, 2)
    await world.publish(4)
    expect(await next).toEqual([3, 4])
    first.close()
    expect(await take(consumer.subscribe(), 2)).toEqual([3, 4])
    expect(await take(consumer.subscribe({ after: 0, types: ['t'] }), 4)).toEqual([1, 2, 3, 4])
  })

  it('waits for a stream that does not exist yet', async () => {
    const world = await createWorld()
    const millrace = world.open()
    const subscription = millrace.stream('s').consumer('c').subscribe()
    expect(await subscription.tryNext()).toBeNull()
    await millrace.forwarder.waitFor('listening')
    const next = take(subscription, 2)
    await world.outside.stream('other').publish({ type: 't', data: 0 })
    await world.publish(1)
    await world.publish(2)
    expect(await next).toEqual([1, 2])
  })

  it.each(['before', 'after'] as const)(
    'S6: misses no commit that lands just %s its first read',
    async (when) => {
      const world = await createWorld()
      await world.publish('old')
      let spy: ReturnType<typeof countStatements> | undefined
      const millrace = world.open({ wrap: (db) => (spy = countStatements(db)).db })
      millrace.listen('any')
      await millrace.forwarder.waitFor('listening')
      let landed = false
      spy![when](async (text) => {
        if (landed || kindOf(text) !== 'read') return
        landed = true
        await world.publish('new')
      })
      const consumer = millrace.stream('s').consumer('c')
      const subscription = consumer.subscribe({ after: (await world.publish('skipped'))[0]! })
      expect(await take(subscription, 1)).toEqual(['new'])
    },
  )

  it('S7: outlives sessions that are terminated, and a database that refuses for a while', async () => {
    const world = await createWorld()
    const millrace = world.open()
    const subscription = millrace.stream('s').consumer('c').subscribe()
    await world.publish(1)
    expect(await take(subscription, 1)).toEqual([1])
    await millrace.forwarder.waitFor('listening')
    let next = take(subscription, 2)
    await world.terminate()
    await world.publish(2)
    await world.publish(3)
    expect(await next).toEqual([2, 3])
    next = take(subscription, 2)
    const refused = world.proxy.accepted()
    world.proxy.refuse()
    await world.publish(4)
    // it tries, and is refused
    await world.proxy.waitForAccepted(refused + 2)
    await world.publish(5)
    world.proxy.heal()
    expect(await next).toEqual([4, 5])
  })

  it('N4: gets the same without any wakes', async () => {
    const world = await createWorld()
    const millrace = world.open({ listen: false, pollMinMs: 5, pollMaxMs: 40 })
    const subscription = millrace.stream('s').consumer('c').subscribe()
    const all = take(subscription, 30)
    for (let n = 0; n < 30; n++) await world.publish(n)
    expect(await all).toEqual(Array.from({ length: 30 }, (_, n) => n))
    expect(millrace.forwarder.mode).toBe('polling')
  })

  it('is released by a rollback at once, also beside an idle transaction that has published nothing (S2)', async () => {
    const world = await createWorld()
    let spy: ReturnType<typeof countStatements> | undefined
    const millrace = world.open({ wrap: (db) => (spy = countStatements(db)).db })
    await world.operator.query('create table public.unrelated (n integer)')
    const idle = await world.operator.connect()
    await idle.query('begin; insert into public.unrelated values (1)')
    const stream = world.outside.stream('s')
    const subscription = millrace.stream('s').consumer('c').subscribe()
    await world.publish(1)
    expect(await take(subscription, 1)).toEqual([1])
    await millrace.forwarder.waitFor('listening')
    const held = await holdTransaction(world.outside.db)
    await stream.publish({ type: 't', data: 'undone' }, { tx: held.tx.drizzle })
    await world.publish(2)
    expect(await stream.read({ after: subscription.position! })).toMatchObject({ events: [], held: true })
    const { heldBy } = (await stream.info())!
    expect(heldBy).toMatchObject([{ stream: 's', state: 'idle in transaction', prepared: null }])
    expect(heldBy[0]!.pid).toBeGreaterThan(0)
    expect(await subscription.tryNext()).toBeNull()
    const next = take(subscription, 1)
    // no wake makes it read so often: it looks by itself
    const looks = (): number => spy!.statements.filter((text) => kindOf(text) === 'read').length
    const before = looks()
    await eventually(() => expect(looks() - before).toBeGreaterThan(4))
    await held.rollback()
    expect((await stream.read({ after: subscription.position! })).events).toMatchObject([{ data: 2 }])
    expect(await next).toEqual([2])
    await idle.query('rollback')
    idle.release()
  })

  it('reads ahead no more than its buffer, however slow its consumer is', async () => {
    const world = await createWorld()
    await world.publish(...Array.from({ length: 40 }, (_, n) => n))
    let spy: ReturnType<typeof countStatements> | undefined
    const millrace = world.open({ wrap: (db) => (spy = countStatements(db)).db })
    const subscription = millrace.stream('s').consumer('c').subscribe({ buffer: 10 })
    const reads = (): number => spy!.statements.filter((text) => kindOf(text) === 'read').length
    expect(reads()).toBe(0)
    expect(await take(subscription, 10)).toHaveLength(10)
    await world.publish('a wake')
    expect(reads()).toBe(1)
    expect(await take(subscription, 11)).toHaveLength(11)
    expect(reads()).toBe(3)
    expect(await take(subscription, 20)).toHaveLength(20)
  })

  it('makes no statement while nothing happens', async () => {
    const world = await createWorld()
    await world.publish(1)
    let spy: ReturnType<typeof countStatements> | undefined
    const millrace = world.open({ wrap: (db) => (spy = countStatements(db)).db, pollMinMs: 1, pollMaxMs: 2 })
    millrace.listen('any')
    await millrace.forwarder.waitFor('listening')
    const subscription = millrace.stream('s').consumer('c').subscribe()
    await take(subscription, 1)
    const next = subscription.next()
    await eventually(() => expect(spy!.statements.length).toBeGreaterThan(1))
    const before = spy!.statements.length
    // other streams' events are none of its business
    for (let n = 0; n < 20; n++) await world.outside.stream('other').publish({ type: 't', data: n })
    expect(spy!.statements.length - before).toBeLessThanOrEqual(1)
    await world.publish(2)
    expect((await next).value).toMatchObject({ data: 2 })
  })

  it('gives with tryNext what is at hand or in the database, and null at the end', async () => {
    const world = await createWorld()
    const [first] = await world.publish(1)
    const subscription = world.open().stream('s').consumer('c').subscribe({ buffer: 1 })
    expect(await subscription.tryNext()).toMatchObject({ data: 1, offset: first })
    expect(await subscription.tryNext()).toBeNull()
    await world.publish(2, 3)
    expect(await subscription.tryNext()).toMatchObject({ data: 2 })
    const [third, fourth] = [subscription.tryNext(), subscription.next()]
    expect(await third).toMatchObject({ data: 3 })
    await world.publish(4)
    expect((await fourth).value).toMatchObject({ data: 4 })
  })

  it('does not count as yielded what the codec could not decode (S8)', async () => {
    const world = await createWorld()
    const offsets = await world.publish('good', 'bad')
    let broken = true
    const codec = {
      encode: (data: unknown) => JSON.stringify(data),
      decode(text: string): unknown {
        if (broken && text === '"bad"') throw new Error('cannot be read')
        return JSON.parse(text)
      },
    }
    const consumer = world.open().stream('s', { codec }).consumer('c')
    const subscription = consumer.subscribe()
    await take(subscription, 1)
    const failed = { code: 'CODEC_FAILED', details: { offset: offsets[1], type: 't' } }
    await expect(subscription.next()).rejects.toMatchObject(failed)
    await expect(subscription.tryNext()).rejects.toMatchObject(failed)
    expect(await subscription.save()).toBe(offsets[0])
    broken = false
    expect(await take(subscription, 1)).toEqual(['bad'])
  })

  it('tells what is wrong with what it was asked, from its first next', async () => {
    const world = await createWorld()
    await world.publish(1)
    const consumer = world.open().stream('s').consumer('c')
    for (const options of [{ buffer: 0 }, { buffer: 1001 }, { types: ['a*b'] }, { after: -1 }]) {
      await expect(consumer.subscribe(options).next()).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    await expect(consumer.subscribe({ after: 1e9 }).next()).rejects.toMatchObject({ code: 'OFFSET_AHEAD' })
  })

  it('ends on abort, on close and on leaving the loop, also while it waits', async () => {
    const world = await createWorld()
    await world.publish(1)
    const consumer = world.open().stream('s').consumer('c')
    const stop = new AbortController()
    const aborted = consumer.subscribe({ signal: stop.signal })
    const closed = consumer.subscribe()
    await Promise.all([take(aborted, 1), take(closed, 1)])
    const waiting = [aborted.next(), closed.next()]
    stop.abort()
    closed.close()
    expect(await Promise.all(waiting)).toEqual([1, 2].map(() => ({ done: true, value: undefined })))
    expect(await aborted.tryNext()).toBeNull()
    const left = consumer.subscribe()
    for await (const { data } of left) {
      expect(data).toBe(1)
      break
    }
    expect(await left.next()).toEqual({ done: true, value: undefined })
    expect((await consumer.subscribe({ signal: stop.signal }).next()).done).toBe(true)
  })
})

describe('a closed store', () => {
  it('fails every call of every handle at once with STORE_CLOSED, and leaves no session', async () => {
    const world = await createWorld()
    await world.publish(1)
    const millrace = world.open()
    const stream = millrace.stream('s')
    const consumer = stream.consumer('c')
    const waiting = consumer.subscribe()
    await take(waiting, 1)
    const listener = millrace.listen('any')
    await listener.ready
    const [end, heard] = [waiting.next(), listener.next()]
    await millrace.close()
    expect((await end).done).toBe(true)
    expect((await heard).done).toBe(true)
    const event = { type: 't', data: 1 }
    const calls: Record<string, () => unknown> = {
      publish: () => stream.publish(event),
      publishMany: () => stream.publishMany([event]),
      read: () => stream.read(),
      readNothing: () => stream.read({ limit: 0 }),
      trim: () => stream.trim(1),
      trimNothing: () => stream.trim(-1),
      info: () => stream.info(),
      configure: () => stream.configure({ count: 1 }),
      offset: () => consumer.offset(),
      save: () => consumer.save(1),
      seek: () => consumer.seek(1),
      consumerRead: () => consumer.read(),
      next: () => consumer.subscribe().next(),
      tryNext: () => consumer.subscribe().tryNext(),
      tryNextOfOld: () => waiting.tryNext(),
      saveOfOld: () => waiting.save(),
      notify: () => millrace.notify('any', ''),
      listen: () => millrace.listen('any'),
      transaction: () => millrace.transaction(async () => {}),
    }
    for (const [name, call] of Object.entries(calls)) {
      const outcome = await (async () => call())().catch((error: unknown) => error)
      expect(outcome, name).toMatchObject({ code: 'STORE_CLOSED' })
    }
    await millrace.close()
    await eventually(async () => expect(await world.sessions()).toBe(0))
  })

  it('ends a subscription that is just reading, or waits for a database that is away', async () => {
    const world = await createWorld()
    await world.publish(1)
    let spy: ReturnType<typeof countStatements> | undefined
    const millrace = world.open({ wrap: (db) => (spy = countStatements(db)).db })
    spy!.before(async (text) => {
      if (kindOf(text) === 'read') await millrace.close()
    })
    const reading = millrace.stream('s').consumer('c').subscribe()
    expect((await reading.next()).done).toBe(true)
    const other = world.open()
    const away = other.stream('s').consumer('c').subscribe()
    await take(away, 1)
    const next = away.next()
    const before = world.proxy.accepted()
    world.proxy.refuse()
    await world.proxy.waitForAccepted(before + 1)
    await other.close()
    expect((await next).done).toBe(true)
  })
})
