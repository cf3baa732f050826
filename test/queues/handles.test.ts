import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { createDeferred } from '../../src/wakes/deferred.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

function cycle(): object {
  const made: { self?: object } = {}
  made.self = made
  return made
}

describe('the handles of a store', () => {
  let store: Millrace
  let drop: () => Promise<void>

  beforeAll(async () => {
    const database = await createMigratedDatabase()
    store = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
    drop = () => database.drop()
  })
  afterAll(async () => {
    await store.close()
    await drop()
  })

  it('a queue sends values, claims them and settles by lease', async () => {
    const queue = store.queue<{ to: string }>('mail')
    const { id } = await queue.send({ data: { to: 'a' }, type: 'welcome' })
    const { messages } = await queue.claim()
    expect(messages).toMatchObject([{ id, type: 'welcome', data: { to: 'a' } }])
    expect(await queue.ack(messages)).toEqual([true])
    expect(await queue.ack(messages)).toEqual([false])
    const value = { data: undefined as never }
    await expect(queue.send(value)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it.each<[string, unknown, string]>([
    ['null', null, 'messages'],
    ['a single message', { data: 1 }, 'messages'],
    ['a list with null', [null], 'message'],
    ['a list with a number in it', [{ data: 1 }, 5], '[1]'],
    ['a BigInt', [{ data: 1n }], 'data'],
    ['a cycle', [{ data: 1 }, { data: cycle() }], '[1].data'],
    ['a window without a key', [{ data: 1, dedupeWindowMs: 1000 }], 'dedupeWindowMs'],
  ])('refuses to send %s', async (_, messages, field) => {
    const invalid = { code: 'INVALID_INPUT', details: { field } }
    await expect(store.queue('wrong').sendMany(messages as never)).rejects.toMatchObject(invalid)
    await expect(store.topic('wrong').publish(messages as never)).rejects.toMatchObject(invalid)
  })

  it('refuses what is no message, no claim and no handler', async () => {
    const queue = store.queue('wrong')
    for (const message of [null, undefined, 5, 'text'])
      await expect(queue.send(message as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    for (const items of [null, { id: 1 }, [null], [{}]]) {
      await expect(queue.fail(items as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(queue.retry(items as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(queue.extend(items as never)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    expect(() => queue.work(undefined as never)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })

  it('Q3: a send in a transaction that rolls back sends nothing', async () => {
    const queue = store.queue<number>('rolled-back')
    const attempt = store.transaction(async ({ drizzle }) => {
      await queue.send({ data: 1 }, { tx: drizzle })
      throw new Error('undo')
    })
    await expect(attempt).rejects.toThrow('undo')
    expect((await queue.claim()).messages).toEqual([])
  })

  it('a worker is woken by a send, and what its handler gives up is a dead letter', async () => {
    const queue = store.queue<number>('work')
    const seen = createDeferred<number>()
    const worker = queue.work(({ data }) => {
      seen.resolve(data)
      return { outcome: 'fail', reason: 'no use' }
    })
    await queue.send({ data: 7 })
    expect(await seen.promise).toBe(7)
    await worker.stop()
    const letters = await queue.deadLetters()
    expect(letters).toMatchObject([{ data: 7, reason: 'no use' }])
    expect(await queue.redrive()).toEqual([letters[0]!.id])
    expect(await queue.stats()).toMatchObject({ ready: 1, dead: 0 })
  })

  it('a topic feeds the queues that are bound', async () => {
    const topic = store.topic<string>('news')
    expect(await topic.bind('reader')).toBe(true)
    expect(await topic.publish([{ data: 'x' }])).toMatchObject({ sent: 1 })
    expect((await store.queue('reader').claim()).messages).toMatchObject([{ data: 'x' }])
    expect(await topic.queues()).toEqual(['reader'])
    expect(await topic.unbind('reader')).toBe(true)
  })

  it('Q4: a lock has one holder at a time', async () => {
    const lock = store.lock('only-one')
    const held = await lock.tryAcquire({ ttlMs: 60_000 })
    expect(await lock.tryAcquire({ ttlMs: 60_000 })).toBeNull()
    expect(await lock.with({ ttlMs: 60_000 }, async () => 1)).toEqual({ acquired: false })
    expect(await lock.state()).toMatchObject({ held: true, fence: held!.fence })
    expect(await lock.release(held!)).toBe(true)
    expect(await lock.with({ ttlMs: 60_000 }, async ({ fence }) => fence > held!.fence)).toEqual({
      acquired: true,
      value: true,
    })
  })

  it('a schedule is put, run at once and deleted', async () => {
    const target = { kind: 'queue', name: 'nightly' } as const
    await store.schedules.put('nightly', { target, cron: '0 3 * * *', data: { job: 1 } })
    await store.schedules.runNow('nightly')
    expect((await store.queue('nightly').claim()).messages).toMatchObject([{ data: { job: 1 } }])
    expect(await store.schedules.delete('nightly')).toBe(true)
  })

  it.each([undefined, 1n, cycle()])(
    'a schedule is refused whose data has no JSON form, as %o',
    async (data) => {
      const put = store.schedules.put('wrong', {
        target: { kind: 'queue', name: 'wrong' },
        cron: '0 3 * * *',
        data,
      })
      await expect(put).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'data' } })
    },
  )

  it('closing stops the workers, and none starts after it', async () => {
    const database = await createMigratedDatabase()
    const other = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
    const worker = other.queue('closing').work(() => {})
    await other.close()
    await worker.stopped
    expect(() => other.queue('closing').work(() => {})).toThrow(
      expect.objectContaining({ code: 'STORE_CLOSED' }),
    )
    await database.drop()
  })
})
