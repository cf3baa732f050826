import { afterAll, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace } from '../../src/millrace.ts'

// nothing listens there: what is refused is refused before any statement
const millrace = createMillrace({ db: createNodePostgresDb({ url: 'postgres://127.0.0.1:9/none' }) })
afterAll(() => millrace.close())
const stream = millrace.stream('orders')
const queue = millrace.queue('mails')

/** As a caller without types gives it. */
const given = (value: unknown): never => value as never
const refused = (field: string) => ({ code: 'INVALID_INPUT', details: { field } })

it.each([
  ['a Map', new Map([['a', 'b']])],
  ['an array', ['a']],
  ['a Headers', new Headers({ a: 'b' })],
  ['a text', 'a'],
  ['an empty text', ''],
  ['false', false],
])('refuses %s as headers, of events and messages', async (_, headers) => {
  const event = given({ type: 't', data: 1, headers })
  await expect(stream.publish(event)).rejects.toMatchObject(refused('headers'))
  const good = { type: 't', data: 1, headers: { a: 'b' } }
  await expect(stream.publishMany([good, event])).rejects.toMatchObject(refused('[1].headers'))
  await expect(queue.send(event)).rejects.toMatchObject(refused('headers'))
})

it.each([Number.NaN, '5', 1.5, Infinity])('refuses %j as the limit of a read', async (limit) => {
  await expect(stream.read({ limit: given(limit) })).rejects.toMatchObject(refused('limit'))
})

it('refuses what is no event and no list, by name', async () => {
  await expect(stream.publish(given(undefined))).rejects.toMatchObject(refused('event'))
  await expect(stream.publish(given(null))).rejects.toMatchObject(refused('event'))
  await expect(stream.publishMany(given([{ type: 't', data: 1 }, null]))).rejects.toMatchObject(
    refused('[1]'),
  )
  await expect(stream.publishMany(given('x'))).rejects.toMatchObject(refused('events'))
  for (const types of ['a', '', new Set(['a'])]) {
    await expect(stream.read({ types: given(types) })).rejects.toMatchObject(refused('types'))
  }
})

it('refuses a retention that is none, or has what is not known', async () => {
  for (const none of [undefined, null, 'x', []]) {
    await expect(stream.configure(given(none))).rejects.toMatchObject(refused('retention'))
  }
  await expect(stream.configure(given({ foo: 1 }))).rejects.toMatchObject(refused('retention.foo'))
  const keepUnread = given('yes')
  await expect(stream.configure({ keepUnread })).rejects.toMatchObject(refused('retention.keepUnread'))
})

it('S8: saving before any event does nothing, until the store is closed', async () => {
  const own = createMillrace({ db: createNodePostgresDb({ url: 'postgres://127.0.0.1:9/none' }) })
  const subscription = own.stream('orders').consumer('c').subscribe()
  expect(await subscription.save()).toBe(null)
  await own.close()
  await expect(subscription.save()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
})
