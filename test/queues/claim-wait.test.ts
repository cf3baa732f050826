import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Db } from '../../src/db/port.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createDeferred } from '../../src/wakes/deferred.ts'
import { createDrivenClock, type DrivenClock } from '../support/clock.ts'
import { spyOn, type SpiedDb } from './spied-db.ts'
import { openDb, passTime, type OpenDb } from './support.ts'

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

interface Setup {
  store: Millrace
  clock: DrivenClock
  spied: SpiedDb
}

/** A store whose time stands still: what happens in it, a wake or the test has made happen. */
async function setUp(options: { listen?: boolean } = {}): Promise<Setup> {
  const spied = spyOn(open.db)
  const clock = createDrivenClock()
  // the database is the file's, and outlives the store
  const db: Db = Object.assign(Object.create(spied.db) as Db, { close: async () => {} })
  const store = createMillrace({ db, ports: { ...createSystemPorts(), clock }, ...options })
  if (options.listen !== false) {
    store.listen('anything')
    await store.forwarder.waitFor('listening')
  }
  return { store, clock, spied }
}

describe('a claim that waits', () => {
  it('N1: is woken by a send, and until then asks nothing', async () => {
    const { store, clock, spied } = await setUp()
    const queue = store.queue<number>('woken')
    const idle = clock.pending()
    const waiting = queue.claim({ waitMs: 30_000 })
    await clock.waitForTimers(idle + 1)
    await clock.advance(29_999)
    expect(spied.calls('claim_messages')).toBe(1)
    await queue.send({ data: 7 })
    expect((await waiting).messages).toMatchObject([{ data: 7 }])
    expect(spied.calls('claim_messages')).toBe(2)
    expect(clock.pending()).toBe(idle)
    await store.close()
  })

  it('makes two statements where nothing comes, and answers with none in the end', async () => {
    const { store, clock, spied } = await setUp()
    for (const round of [1, 2]) {
      const idle = clock.pending()
      const waiting = store.queue('idle').claim({ waitMs: 30_000 })
      await clock.waitForTimers(idle + 1)
      await clock.advance(30_000)
      expect(await waiting).toEqual({ messages: [], nextDueMs: null })
      expect([spied.calls('claim_messages'), spied.calls('ensure_queue')]).toEqual([2 * round, 1])
    }
    await store.close()
  })

  it('takes at once what is there, and what falls due while it waits', async () => {
    const { store, clock } = await setUp()
    const queue = store.queue<string>('due')
    await queue.send({ data: 'now' })
    await queue.send({ data: 'later', delayMs: 20_000 })
    const idle = clock.pending()
    const first = await queue.claim({ limit: 5, waitMs: 30_000 })
    expect(first.messages).toMatchObject([{ data: 'now' }])
    await queue.ack(first.messages)
    const waiting = queue.claim({ waitMs: 30_000 })
    await clock.waitForTimers(idle + 1)
    expect(clock.nextIn()).toBeLessThanOrEqual(20_000)
    await passTime(open, 'due', 20_000)
    await clock.advance(20_000)
    expect((await waiting).messages).toMatchObject([{ data: 'later' }])
    await store.close()
  })

  it('polls where no wake arrives', async () => {
    const { store, clock, spied } = await setUp({ listen: false })
    const queue = store.queue<number>('polled')
    const waiting = queue.claim({ waitMs: 30_000 })
    await clock.waitForTimers(1)
    await queue.send({ data: 1 })
    expect(spied.calls('claim_messages')).toBe(1)
    await clock.advance(1000)
    expect((await waiting).messages).toMatchObject([{ data: 1 }])
    const again = queue.claim({ waitMs: 30_000 })
    for (let polls = 3; polls < 10; polls++) {
      await spied.waitForCalls('claim_messages', polls)
      await clock.waitForTimers(1)
      // never rarer than this, however long nothing comes
      expect(clock.nextIn()).toBeLessThanOrEqual(4000)
      await clock.advance(clock.nextIn()!)
    }
    await store.close()
    await expect(again).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('does not stand in the way of other claims of its handle', async () => {
    const { store, clock } = await setUp()
    const queue = store.queue<number>('others')
    const idle = clock.pending()
    const leaving = new AbortController()
    const waiting = queue.claim({ types: ['rare'], waitMs: 30_000, signal: leaving.signal })
    await clock.waitForTimers(idle + 1)
    await queue.send({ data: 1 })
    expect((await queue.claim({ types: ['rare'] })).messages).toEqual([])
    expect((await queue.claim()).messages).toHaveLength(1)
    leaving.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' })
    await store.close()
  })

  it('ends with its signal, and with the store though a worker is not done', async () => {
    const { store, clock } = await setUp()
    const queue = store.queue<number>('ending')
    const idle = clock.pending()
    const gone = new AbortController()
    const left = queue.claim({ waitMs: 30_000, signal: gone.signal })
    await clock.waitForTimers(idle + 1)
    gone.abort()
    await expect(left).rejects.toMatchObject({ code: 'ABORTED' })
    expect(clock.pending()).toBe(idle)
    await expect(queue.claim({ signal: gone.signal })).rejects.toMatchObject({ code: 'ABORTED' })

    const waiting = queue.claim({ waitMs: 30_000 })
    const ended = waiting.catch((error: unknown) => error)
    await clock.waitForTimers(idle + 1)
    const begun = createDeferred<void>()
    const busy = createDeferred<void>()
    store.queue<number>('slow').work(async () => {
      begun.resolve()
      await busy.promise
    })
    await store.queue<number>('slow').send({ data: 1 })
    await begun.promise
    const closing = store.close()
    expect(await ended).toMatchObject({ code: 'STORE_CLOSED' })
    busy.resolve()
    await clock.advance(1000)
    await closing
    await expect(queue.claim({ waitMs: 1 })).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('refuses a wait that is none, and makes no queue for a claim that it refuses', async () => {
    const { store, spied } = await setUp({ listen: false })
    const queue = store.queue('refused')
    for (const waitMs of [-1, 1.5, 30_001, Number.NaN]) {
      await expect(queue.claim({ waitMs })).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        details: { field: 'waitMs' },
      })
    }
    await expect(queue.claim({ waitMs: 1, leaseMs: 0 })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect(await queue.claim({ limit: 0, waitMs: 30_000 })).toEqual({ messages: [], nextDueMs: 0 })
    expect(spied.calls('ensure_queue')).toBe(0)
    await store.close()
  })
})
