import { readFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { createMillrace } from '../../src/millrace.ts'
import type { Codec } from '../../src/streams/codec.ts'
import type { EventMap, StreamHandle } from '../../src/streams/stream-handle.ts'
import { describeOnEveryDriver, type ContractDatabase } from './drivers.ts'

/** Data that is JSON text already. */
const verbatim: Codec = { encode: (data) => data as string, decode: (text) => text }

const vectors = JSON.parse(
  readFileSync(new URL('../vectors/payload-fidelity.json', import.meta.url), 'utf8'),
) as { cases: { json: string; why: string; refused?: boolean }[] }

let count = 0
/** A stream of its own for each test, without a statement. */
function streamsOf(given: () => ContractDatabase) {
  return (codec?: Codec): StreamHandle<EventMap> =>
    createMillrace({ db: given().db }).stream(`handle-${++count}`, { codec })
}

/** The same database, counting how often anything is asked of it. */
function counted(db: Db): { db: Db; asked: () => number } {
  let asked = 0
  const drizzle = new Proxy(db.drizzle, {
    get(target, name) {
      asked += 1
      return Reflect.get(target, name) as unknown
    },
  })
  return { db: { ...db, drizzle }, asked: () => asked }
}

async function numbered(stream: StreamHandle<EventMap>, n: number): Promise<number[]> {
  return stream.publishMany(Array.from({ length: n }, (_, i) => ({ type: 't', data: i + 1 })))
}

async function dataOf(stream: StreamHandle<EventMap>, after = 0): Promise<unknown[]> {
  return (await stream.read({ after })).events.map(({ data }) => data)
}

describeOnEveryDriver('a stream handle', (given) => {
  const open = streamsOf(given)

  it('publishes one and many, and reads them back as they were', async () => {
    const stream = open()
    const first = await stream.publish({
      ...{ type: 'order.created', key: 'k"1', data: { total: 1 }, headers: { trace: 'a,b' } },
    })
    const more = await stream.publishMany([
      { type: 'order.paid', data: [1], key: null },
      { type: 'x', data: 'é😀' },
    ])
    expect(more).toEqual([first + 1, first + 2])
    const { events, next, horizon, more: hasMore, held } = await stream.read()
    expect(events).toMatchObject([
      { offset: first, type: 'order.created', key: 'k"1', data: { total: 1 }, headers: { trace: 'a,b' } },
      { offset: more[0], type: 'order.paid', key: null, data: [1], headers: null },
      { offset: more[1], type: 'x', key: null, data: 'é😀', headers: null },
    ])
    const [stored] = await runQuery<{ at: unknown }>(
      given().db,
      sql`select floor(extract(epoch from e.published_at) * 1000)::text as at
        from ${given().db.tables.events} e where e."offset" = ${first}::bigint`,
    )
    expect(events[0]?.publishedAt.getTime()).toBe(Number(stored?.at))
    expect({ next, horizon, hasMore, held }).toEqual({
      ...{ next: more[1], horizon: more[1], hasMore: false, held: false },
    })
  })

  describe('keeps the bytes of the data (S9)', () => {
    it.each(vectors.cases)('$why', async ({ json, refused }) => {
      const stream = open(verbatim)
      const published = stream.publish({ type: 't', data: json })
      if (refused === true) {
        await expect(published).rejects.toMatchObject({ code: expect.stringMatching(/^(INVALID_|JSON_TOO)/) })
        expect(await dataOf(stream)).toEqual([])
        return
      }
      await published
      expect(await dataOf(stream)).toEqual([json.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')])
    })
  })

  it('publishes once per idempotency key, also many and concurrently', async () => {
    const stream = open()
    const all = await Promise.all(
      Array.from({ length: 10 }, () =>
        stream.publishMany(
          [1, 2].map((data) => ({ type: 't', data })),
          { idempotencyKey: 'k' },
        ),
      ),
    )
    expect(new Set(all.map(String)).size).toBe(1)
    expect(await dataOf(stream)).toEqual([1, 2])
    const other = stream.publish({ type: 't', data: 1 }, { idempotencyKey: 'k' })
    await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' })
    for (const idempotencyKey of ['', 'k'.repeat(257)]) {
      const refused = stream.publish({ type: 't', data: 1 }, { idempotencyKey })
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
  })

  it('fails with CODEC_FAILED where the codec throws, returns no text, or there is no JSON form', async () => {
    const broken: Codec = {
      encode: (data) => (data === 'no text' ? (7 as never) : JSON.stringify(data)),
      decode(text) {
        if (text === '"bad"') throw new RangeError('cannot be read')
        return JSON.parse(text)
      },
    }
    const stream = open(broken)
    await expect(stream.publish({ type: 't', data: 'no text' })).rejects.toMatchObject({
      code: 'CODEC_FAILED',
    })
    for (const data of [undefined, () => 1, 1n]) {
      const failed = open().publish({ type: 't', data })
      await expect(failed).rejects.toMatchObject({ code: 'CODEC_FAILED', details: { type: 't' } })
    }
    const [, bad] = await stream.publishMany(['good', 'bad'].map((data) => ({ type: 't', data })))
    await expect(stream.read()).rejects.toMatchObject({
      ...{ code: 'CODEC_FAILED', details: { type: 't', offset: bad }, cause: { message: 'cannot be read' } },
    })
    expect((await stream.read({ limit: 1 })).events).toMatchObject([{ data: 'good' }])
  })

  it('refuses empty names and keys, and the reserved prefix for streams, but not for consumers', async () => {
    const millrace = createMillrace({ db: given().db })
    for (const name of ['', 'a b', '.a', 'a/b', 'n'.repeat(129), 7 as never]) {
      expect(() => millrace.stream(name)).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }))
    }
    const reserved = millrace.stream('millrace.mine')
    await expect(reserved.publish({ type: 't', data: 1 })).rejects.toMatchObject({ code: 'INVALID_NAME' })
    await expect(reserved.configure({ count: 1 })).rejects.toMatchObject({ code: 'INVALID_NAME' })
    expect(await dataOf(reserved)).toEqual([])
    const stream = open()
    for (const event of [{ key: '' }, { type: '' }, { key: 'a\n' }, { key: 'k'.repeat(513) }]) {
      const refused = stream.publish({ type: 't', data: 1, ...event })
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    const offset = await stream.publish({ type: 't', data: 1 })
    for (const name of ['', 'a\0', 'c'.repeat(129), '\ud800']) {
      expect(() => stream.consumer(name)).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }))
    }
    for (const name of ['millrace.mine', 'a/b', 'ü ☃']) {
      expect(await stream.consumer(name).save(offset)).toBe(offset)
    }
  })

  it('S3: saves forward only, and seeks anywhere', async () => {
    const stream = open()
    const [one = 0, two = 0, three = 0] = await numbered(stream, 3)
    const consumer = stream.consumer('c')
    expect(await consumer.offset()).toBe(0)
    expect(await consumer.save(two)).toBe(two)
    expect(await consumer.save(one)).toBe(two)
    const saved = await Promise.all([three, one, two].map((offset) => consumer.save(offset)))
    expect(Math.max(...saved)).toBe(three)
    expect(await consumer.offset()).toBe(three)
    expect(await consumer.seek(one)).toBe(one)
    expect((await consumer.read()).events.map(({ data }) => data)).toEqual([2, 3])
    expect(await consumer.seek(0)).toBe(0)
    expect(await consumer.save(two)).toBe(two)
  })

  it('refuses an offset that was never given out (OFFSET_AHEAD), or cannot be one', async () => {
    const stream = open()
    const last = await stream.publish({ type: 't', data: 1 })
    const consumer = stream.consumer('c')
    const ahead = { code: 'OFFSET_AHEAD', details: { last: expect.any(Number) } }
    await expect(stream.read({ after: last + 1e6 })).rejects.toMatchObject(ahead)
    await expect(consumer.save(last + 1e6)).rejects.toMatchObject(ahead)
    await expect(consumer.seek(last + 1e6)).rejects.toMatchObject(ahead)
    for (const offset of [-1, 1.5, Number.NaN, 2 ** 53]) {
      await expect(stream.read({ after: offset })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(consumer.save(offset)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
      await expect(stream.trim(offset === -1 ? 0.5 : offset)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    expect(await consumer.offset()).toBe(0)
    await expect(open().consumer('c').save(0)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('S4: trims up to an offset, and the rest and saved offsets stay', async () => {
    const stream = open()
    const offsets = await numbered(stream, 5)
    const consumer = stream.consumer('c')
    await consumer.save(offsets[0]!)
    expect(await stream.trim(-1)).toBe(0)
    expect(await stream.trim(0)).toBe(0)
    expect(await dataOf(stream)).toHaveLength(5)
    expect(await stream.trim(offsets[2]!)).toBe(3)
    expect(await stream.trim(offsets[2]!)).toBe(0)
    expect((await stream.read()).events.map(({ offset }) => offset)).toEqual(offsets.slice(3))
    expect(await consumer.offset()).toBe(offsets[0])
    expect((await consumer.read()).events.map(({ data }) => data)).toEqual([4, 5])
    expect(await stream.trim(Number.MAX_SAFE_INTEGER)).toBe(2)
    expect(await stream.info()).toMatchObject({ first: null, last: null })
    expect(await stream.publish({ type: 't', data: 6 })).toBeGreaterThan(offsets[4]!)
    expect(await open().trim(7)).toBe(0)
  })

  it('S5: asks the database nothing at a limit of 0 and less, nor for a trim of nothing', async () => {
    const { db, asked } = counted(given().db)
    const stream = createMillrace({ db }).stream(`counted-${++count}`)
    for (const limit of [0, -1, -0, -Infinity]) {
      expect(await stream.read({ after: 7, limit })).toMatchObject({ events: [], next: 7, more: false })
    }
    await stream.trim(-5)
    expect(asked()).toBe(0)
    await stream.read({ limit: 1 })
    expect(asked()).toBeGreaterThan(0)
  })

  it('filters by type, exactly and by prefix, taking LIKE’s own signs as they are', async () => {
    const stream = open()
    const types = ['order.created', 'order.paid', 'order_x', 'orderAx', 'user.created', '100%', 'a\\b']
    await stream.publishMany(types.map((type) => ({ type, data: type })))
    const read = async (...wanted: string[]) =>
      (await stream.read({ types: wanted })).events.map(({ type }) => type)
    expect(await read('order.*')).toEqual(['order.created', 'order.paid'])
    expect(await read('order_*')).toEqual(['order_x'])
    expect(await read('user.created', 'order.paid')).toEqual(['order.paid', 'user.created'])
    expect(await read('100%*', 'a\\*')).toEqual(['100%', 'a\\b'])
    expect(await read('*')).toEqual(types)
    expect(await read()).toEqual(types)
    expect(await read('order')).toEqual([])
    for (const wrong of [[''], ['a*b'], ['**'], Array.from({ length: 101 }, () => 'a')]) {
      await expect(stream.read({ types: wrong })).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
  })

  it('ends a page before its size is a burden, however well the events compress (S1)', async () => {
    const stream = open(verbatim)
    const mebibyte = `"${'x'.repeat(1024 * 1024 - 2)}"`
    const offsets: number[] = []
    for (let n = 0; n < 5; n++) offsets.push(await stream.publish({ type: `t${n % 2}`, data: mebibyte }))
    const first = await stream.read()
    expect(first).toMatchObject({ more: true, next: offsets[2] })
    expect(first.events.map(({ offset }) => offset)).toEqual(offsets.slice(0, 3))
    const rest = await stream.read({ after: first.next })
    expect(rest.events.map(({ offset }) => offset)).toEqual(offsets.slice(3))
    expect(rest.more).toBe(false)
    expect((await stream.read({ types: ['t1'] })).events).toHaveLength(2)
  })

  it('tells of a stream: its ends, horizon, retention, and consumers with their lag', async () => {
    const stream = open()
    expect(await stream.info()).toBeNull()
    const offsets = await numbered(stream, 4)
    await stream.consumer('b').save(offsets[1]!)
    await stream.consumer('a').save(offsets[3]!)
    expect(await stream.configure({ ageMs: 5_000 })).toEqual({ ageMs: 5_000, count: null, keepUnread: false })
    await stream.configure({ count: 9, keepUnread: true })
    await stream.trim(offsets[0]!)
    const info = await stream.info()
    expect(info).toMatchObject({
      ...{ name: stream.name, first: offsets[1], last: offsets[3], heldBy: [] },
      retention: { ageMs: 5_000, count: 9, keepUnread: true },
      consumers: [
        { name: 'a', kind: 'consumer', offset: offsets[3], lag: 0 },
        { name: 'b', kind: 'consumer', offset: offsets[1], lag: 2 },
      ],
    })
    expect(info!.horizon).toBeGreaterThanOrEqual(offsets[3]!)
    for (const wrong of [{ ageMs: 999 }, { ageMs: 1.5 }, { count: -1 }]) {
      await expect(stream.configure(wrong)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
  })
})

describeOnEveryDriver(
  'a stream handle in a transaction',
  (given) => {
    const open = streamsOf(given)

    it('publishes, saves and trims if and only if it commits, and reads its own writes before', async () => {
      const stream = open()
      const consumer = stream.consumer('c')
      const [kept = 0] = await numbered(stream, 1)
      const work = async (end: () => void) =>
        given().db.transaction(async ({ drizzle: tx }) => {
          const offset = await stream.publish({ type: 't', data: 'mine' }, { tx })
          expect((await stream.read({ after: kept }, { tx })).events).toMatchObject([{ data: 'mine' }])
          await consumer.save(offset, { tx })
          expect(await consumer.offset({ tx })).toBe(offset)
          expect((await stream.info({ tx }))?.last).toBe(offset)
          expect(await stream.trim(kept, { tx })).toBe(1)
          end()
          return offset
        })
      const rolledBack = work(() => {
        throw new Error('no')
      })
      await expect(rolledBack).rejects.toThrow('no')
      expect(await dataOf(stream)).toEqual([1])
      expect(await consumer.offset()).toBe(0)
      const offset = await work(() => {})
      expect(await dataOf(stream)).toEqual(['mine'])
      expect(await consumer.offset()).toBe(offset)
    })
  },
  { needs: ['interactiveTx'] },
)
