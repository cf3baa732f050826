import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import type { Executor } from '../../src/db/port.ts'
import { qualified, runQuery } from '../../src/db/run.ts'
import { describeOnEveryDriver } from './drivers.ts'
import { eventually } from './support/eventually.ts'
import { append, publish, read, readData } from './support/streams.ts'

async function count(on: Executor, statement: ReturnType<typeof sql>): Promise<number> {
  const [row] = await runQuery<{ n: string }>(on, sql`select count(*)::text as n from ${statement}`)
  return Number(row?.n)
}

describeOnEveryDriver('publish and read', (given) => {
  it('gives ascending offsets in the order of the arrays, and reads the same back (S9)', async () => {
    const { db } = given()
    const data = ['{"b":1, "a":1.0,"a":"\\u0000"}', '"é😀\\\\"', '[]']
    const { offsets, replayed } = await publish(db, 'orders', {
      data,
      types: ['order.created', 'order,paid', '{x}'],
      keys: ['k"1', null, ''],
      headers: ['{"trace": "a,b"}', null, '{}'],
    })
    expect(replayed).toBe(false)
    expect(offsets).toEqual([offsets[0], offsets[0]! + 1, offsets[0]! + 2])
    const page = await read(db, 'orders')
    expect(page).toMatchObject({ horizon: offsets[2], last: offsets[2] })
    expect(page.rows).toEqual([
      { offset: offsets[0], type: 'order.created', key: 'k"1', data: data[0], headers: '{"trace": "a,b"}' },
      { offset: offsets[1], type: 'order,paid', key: null, data: data[1], headers: null },
      { offset: offsets[2], type: '{x}', key: '', data: data[2], headers: '{}' },
    ])
  })

  it('pages by offset, by limit and by size', async () => {
    const { db } = given()
    const { offsets } = await publish(db, 'pages', { data: ['1', '2', '3', '4'] })
    expect(await readData(db, 'pages', offsets[1])).toEqual(['3', '4'])
    expect((await read(db, 'pages', { limit: 2 })).rows.map((row) => row.data)).toEqual(['1', '2'])
    expect((await read(db, 'pages', { maxBytes: 1 })).rows.map((row) => row.data)).toEqual(['1'])
    expect(await readData(db, 'pages', offsets[3])).toEqual([])
  })

  it('reads a stream that does not exist as empty, at no horizon', async () => {
    const { db } = given()
    await publish(db, 'exists', { data: ['1'] })
    const page = await read(db, 'nobody')
    expect(page).toMatchObject({ horizon: 0, rows: [] })
    expect(page.last).toBeGreaterThan(0)
  })

  it('publishes an empty array as nothing', async () => {
    expect((await publish(given().db, 'empty', { data: [] })).offsets).toEqual([])
  })

  it('stores nothing of a publish that fails in the middle, not even the stream', async () => {
    const { db } = given()
    const refused = publish(db, 'broken', { data: ['1', '{', '3'] })
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_JSON', details: { sqlState: '22P02' } })
    expect(await readData(db, 'broken')).toEqual([])
    expect(await count(db, sql`${qualified(db, 'streams')} where name = 'broken'`)).toBe(0)
  })

  it('cannot be inserted around: an event without a drawn offset is refused', async () => {
    const { db } = given()
    const around = runQuery(
      db,
      sql`insert into ${qualified(db, 'events')} (stream_id, type, data, published_at)
        values (1, 't', '1', now())`,
    )
    await expect(around).rejects.toMatchObject({ details: { sqlState: '23502' } })
  })
})

describeOnEveryDriver('an idempotency key', (given) => {
  it('makes 50 concurrent publishes one event, and gives all the same offset', async () => {
    const { db } = given()
    const input = { data: ['1'], idempotencyKey: 'k', contentHash: 'h' }
    const all = await Promise.all(Array.from({ length: 50 }, () => publish(db, 'once', input)))
    expect(new Set(all.flatMap((one) => one.offsets)).size).toBe(1)
    expect(all.filter((one) => !one.replayed)).toHaveLength(1)
    expect(await readData(db, 'once')).toEqual(['1'])
  })

  it('refuses other content with IDEMPOTENCY_CONFLICT, and publishes nothing', async () => {
    const { db } = given()
    await publish(db, 'conflict', { data: ['1'], idempotencyKey: 'k', contentHash: 'a' })
    await expect(
      publish(db, 'conflict', { data: ['2'], idempotencyKey: 'k', contentHash: 'b' }),
    ).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' })
    expect(await readData(db, 'conflict')).toEqual(['1'])
  })

  it('holds per stream, and for its time only', async () => {
    const { db } = given()
    const input = { data: ['1'], idempotencyKey: 'k', contentHash: 'h' }
    await publish(db, 'one', input)
    expect((await publish(db, 'another', input)).replayed).toBe(false)
    await runQuery(
      db,
      sql`update ${qualified(db, 'publish_keys')} set expires_at = clock_timestamp() - interval '1 s'`,
    )
    const again = await publish(db, 'one', { ...input, data: ['2'], contentHash: 'other' })
    expect(again.replayed).toBe(false)
    expect(await readData(db, 'one')).toEqual(['1', '2'])
  })

  it('is free again when the publish that used it failed', async () => {
    const { db } = given()
    const key = { idempotencyKey: 'k', contentHash: 'h' }
    await publish(db, 'failed', { data: ['{'], ...key }).catch(() => {})
    expect((await publish(db, 'failed', { data: ['1'], ...key })).replayed).toBe(false)
  })
})

describeOnEveryDriver(
  'append in a transaction',
  (given) => {
    it('comes with the commit, and is visible to the transaction itself before it', async () => {
      const { db } = given()
      await db.transaction(async (tx) => {
        await append(tx, 'own', { data: ['1'] })
        await append(tx, 'own', { data: ['2'] })
        expect(await readData(tx, 'own')).toEqual(['1', '2'])
      })
      expect(await readData(db, 'own')).toEqual(['1', '2'])
    })

    it('leaves nothing after a rollback, not even the stream (Q3)', async () => {
      const { db } = given()
      const failed = db.transaction(async (tx) => {
        await append(tx, 'gone', { data: ['1'], idempotencyKey: 'k', contentHash: 'h' })
        throw new Error('no')
      })
      await expect(failed).rejects.toThrow('no')
      expect(await count(db, sql`${qualified(db, 'streams')} where name = 'gone'`)).toBe(0)
      const after = await publish(db, 'gone', { data: ['2'], idempotencyKey: 'k', contentHash: 'x' })
      expect(after.replayed).toBe(false)
      expect(await readData(db, 'gone')).toEqual(['2'])
    })

    it('repeats its own offsets for its own idempotency key', async () => {
      const input = { data: ['1'], idempotencyKey: 'k', contentHash: 'h' }
      const [first, second] = await given().db.transaction(async (tx) => [
        await append(tx, 'twice', input),
        await append(tx, 'twice', input),
      ])
      expect(second).toEqual({ ...first, replayed: true })
    })

    it('works at REPEATABLE READ, where reading is refused with ISOLATION_LEVEL (S1)', async () => {
      const { db } = given()
      const refused = db.drizzle.transaction(
        async (drizzle) => {
          const tx = { ...db, drizzle }
          await append(tx, 'isolated', { data: ['1'] })
          const savepoint = drizzle.transaction((inner) => read({ ...db, drizzle: inner }, 'isolated'))
          return savepoint.catch((error: unknown) => error)
        },
        { isolationLevel: 'repeatable read' },
      )
      expect(await refused).toMatchObject({ code: 'ISOLATION_LEVEL' })
      expect(await readData(db, 'isolated')).toEqual(['1'])
    })

    it('is the way there: publish says that it commits by itself', async () => {
      const failed = given().db.transaction((tx) => publish(tx, 'inside', { data: ['1'] }))
      await expect(failed).rejects.toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('{ tx }') as string,
        details: { sqlState: '2D000' },
      })
      expect(await readData(given().db, 'inside')).toEqual([])
    })

    it('holds one lock for 10,000 appends, also after a savepoint fell back', async () => {
      const { db } = given()
      const own = sql`pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`
      await db.transaction(async (tx) => {
        const nested = tx.drizzle.transaction(async (drizzle) => {
          await append({ ...tx, drizzle }, 'many', { data: ['0'] })
          throw new Error('fall back')
        })
        await nested.catch(() => {})
        expect(await count(tx, own)).toBe(0)
        await runQuery(
          tx,
          sql`select count(a.o_offsets) from generate_series(1, 10000) g
            cross join lateral ${qualified(tx, 'append')}('many', array['t'], array[null], array[g::text], array[null], null, null) a`,
        )
        expect(await count(tx, own)).toBe(1)
      })
      expect(await count(db, sql`${qualified(db, 'events')} where type = 't'`)).toBe(10_000)
    })
  },
  { needs: ['interactiveTx'] },
)

describeOnEveryDriver(
  'a wake',
  (given) => {
    it('follows a publish, names the stream, and is not repeated for a replay (N1)', async () => {
      const { db } = given()
      const heard: string[] = []
      const connection = await db.connectDirect()
      connection.onNotification((channel, payload) => heard.push(`${channel} ${payload}`))
      await connection.execute(`LISTEN "millrace.wake"; LISTEN done`)
      const input = { data: ['1'], idempotencyKey: 'k', contentHash: 'h' }
      const { streamId } = await publish(db, 'woken', input)
      await publish(db, 'woken', input)
      await db
        .transaction(async (tx) => {
          await runQuery(tx, sql`select ${qualified(tx, 'wake_stream')}(77)`)
          throw new Error('no')
        })
        .catch(() => {})
      await db.transaction((tx) => runQuery(tx, sql`select ${qualified(tx, 'wake_stream')}(78)`))
      await runQuery(db, sql`select pg_notify('done', '')`)
      await eventually(() => expect(heard).toContain('done '))
      expect(heard).toEqual([`millrace.wake s${streamId}`, 'millrace.wake s78', 'done '])
      await connection.close()
    })
  },
  { needs: ['listen', 'interactiveTx'] },
)
