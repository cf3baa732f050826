import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/wakes/fan-out.ts'
import { maxPayloadBytes, notify } from '../../src/wakes/notify.ts'
import { createHarness, notification, take, type Harness } from './support/harness.ts'

let harness: Harness
let listener: Listener
beforeAll(async () => {
  harness = await createHarness()
  const forwarder = harness.forwarder()
  listener = forwarder.listen('c')
  forwarder.start()
  await forwarder.waitFor('listening')
})
afterAll(() => harness.close())

describe('notify', () => {
  it('N1: is delivered with the commit of its transaction, and not before', async () => {
    await harness.db.drizzle.transaction(async (tx) => {
      await notify(harness.db, 'c', 'in the transaction', { tx })
      // sent later, committed earlier
      await notify(harness.db, 'c', 'outside')
      expect(await take(listener, 1)).toEqual([notification('c', 'outside')])
    })
    expect(await take(listener, 1)).toEqual([notification('c', 'in the transaction')])
  })

  it('N1: is not delivered when the transaction or its savepoint rolls back', async () => {
    const rolledBack = harness.db.drizzle.transaction(async (tx) => {
      await notify(harness.db, 'c', 'never', { tx })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    await harness.db.drizzle.transaction(async (tx) => {
      await notify(harness.db, 'c', 'kept', { tx })
      const savepoint = tx.transaction(async (inner) => {
        await notify(harness.db, 'c', 'never either', { tx: inner })
        throw new Error('back to the savepoint')
      })
      await expect(savepoint).rejects.toThrow('back to the savepoint')
    })
    await notify(harness.db, 'c', 'end')
    expect(await take(listener, 2)).toEqual([notification('c', 'kept'), notification('c', 'end')])
  })

  it('comes after what its transaction wrote: who is told can read it', async () => {
    await harness.outside.query('create table public.written (n int)')
    await harness.db.drizzle.transaction(async (tx) => {
      await tx.execute('insert into public.written values (1)')
      await notify(harness.db, 'c', 'written', { tx })
      expect(((await tx.execute('select n from public.written')) as { rows?: unknown }).rows).toEqual([
        { n: 1 },
      ])
    })
    await take(listener, 1)
    expect((await harness.outside.query('select n from public.written')).rows).toEqual([{ n: 1 }])
  })

  it('carries 7999 bytes, counted as UTF-8, and an empty text', async () => {
    for (const payload of ['x'.repeat(maxPayloadBytes), `x${'€'.repeat(2666)}`, '', `'; "\n\\`]) {
      await notify(harness.db, 'c', payload)
      expect(await take(listener, 1)).toEqual([notification('c', payload)])
    }
  })

  it('refuses one byte more before the round trip, where the database would refuse it too', async () => {
    const unreachable = { ...harness.db, drizzle: undefined as never }
    for (const payload of ['x'.repeat(8000), `xx${'€'.repeat(2666)}`, 'x'.repeat(10_000_000)]) {
      await expect(notify(unreachable, 'c', payload)).rejects.toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
        status: 413,
      })
    }
    const direct = harness.outside.query('select pg_catalog.pg_notify($1, $2)', ['c', 'x'.repeat(8000)])
    await expect(direct).rejects.toMatchObject({ code: '22023' })
  })

  it('refuses what is no text of Postgres, and names it cannot send to', async () => {
    const unreachable = { ...harness.db, drizzle: undefined as never }
    for (const payload of ['a\0b', '\udc00']) {
      await expect(notify(unreachable, 'c', payload)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    }
    for (const channel of ['', 'x'.repeat(64), 'ü'.repeat(32), 'a\0', 'millrace.wake']) {
      await expect(notify(unreachable, channel, '')).rejects.toMatchObject({ code: 'INVALID_NAME' })
    }
  })
})
