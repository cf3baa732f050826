import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { createClient, type Client } from '../../src/client/client.ts'
import type * as types from '../../src/client/types.ts'
import type { CreatedWebhook, WebhookRules } from '../../src/webhooks/create-webhook.ts'
import type { WebhookPage } from '../../src/webhooks/list-webhooks.ts'
import type { WebhookChange, WebhookInput } from '../../src/webhooks/webhook-input.ts'
import type { WebhookView } from '../../src/webhooks/webhook-view.ts'
import type { ReadyReport } from '../../src/http/health.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'

let server: ApiServer
let client: Client

beforeAll(async () => {
  server = await startApiServer()
  client = createClient({ url: server.url, key: server.rootKey })
})
afterAll(() => server.close())

const code = (code: string) => expect.objectContaining({ name: 'MillraceError', code })

describe('publishing and reading', () => {
  it('brings an event back as it was published', async () => {
    const stream = client.stream('round')
    const published = await stream.publish({ type: 'a', data: { x: [1] }, key: 'k', headers: { trace: 't' } })
    const page = await stream.read()
    expect(page).toEqual({
      events: [
        {
          offset: published.offset,
          type: 'a',
          key: 'k',
          data: { x: [1] },
          dataText: '{"x":[1]}',
          headers: { trace: 't' },
          publishedAt: expect.any(Date),
        },
      ],
      next: published.offset,
      horizon: published.offset,
    })
    expect(published.replayed).toBe(false)
  })

  it('S9: keeps the bytes of dataText, which JSON.parse would change', async () => {
    const stream = client.stream('bytes')
    const texts = ['{"a":  12345678901234567890,"a":1.0}', '"\\u0000 }],\\" "', '[ ]', ' 1e999', 'null']
    for (const dataText of texts) await stream.publish({ type: 'a', dataText })
    const { events } = await stream.read()
    expect(events.map((event) => event.dataText)).toEqual(texts.map((text) => text.trim()))
  })

  it('refuses dataText that would smuggle in members of the event', async () => {
    const smuggling = client.stream('smuggle').publish({ type: 'a', dataText: '1,"key":"x"' })
    await expect(smuggling).rejects.toEqual(code('INVALID_JSON'))
    const missing = client.stream('smuggle').publish({ type: 'a', data: undefined })
    await expect(missing).rejects.toEqual(code('INVALID_INPUT'))
  })

  it('publishes many, and NDJSON, and tells the offsets in order', async () => {
    const stream = client.stream('many')
    const many = await stream.publishMany([
      { type: 'a', data: 1 },
      { type: 'b', dataText: '2.0' },
    ])
    const lines = await stream.publishNdjson('{"type":"c","data":3}\n{"type":"a","data":4}\n')
    const { events } = await stream.read({ types: ['a', 'c*'], limit: 10 })
    expect(events.map(({ offset, dataText }) => [offset, dataText])).toEqual([
      [many.offsets[0], '1'],
      [lines.offsets[0], '3'],
      [lines.offsets[1], '4'],
    ])
  })

  it('repeats a publish with the same idempotency key without publishing again', async () => {
    const stream = client.stream('once')
    const first = await stream.publish({ type: 'a', data: 1 }, { idempotencyKey: 'k' })
    expect(await stream.publish({ type: 'a', data: 1 }, { idempotencyKey: 'k' })).toEqual({
      offset: first.offset,
      replayed: true,
    })
    const other = stream.publish({ type: 'a', data: 2 }, { idempotencyKey: 'k' })
    await expect(other).rejects.toEqual(code('IDEMPOTENCY_CONFLICT'))
  })

  it('is typed by the events of the stream', async () => {
    type Orders = { created: { id: string }; paid: { cents: number } }
    const stream = client.stream<Orders>('typed')
    await stream.publish({ type: 'paid', data: { cents: 5 } })
    // @ts-expect-error -- the data of another type
    await stream.publish({ type: 'created', data: { cents: 5 } })
    const [event] = (await stream.read()).events
    expect(event?.type === 'paid' && event.data.cents).toBe(5)
    if (event?.type === 'created') expectTypeOf(event.data).toEqualTypeOf<{ id: string }>()
  })
})

describe('consumers', () => {
  it('S3: save forward only, and move back by seek', async () => {
    const stream = client.stream('consumed')
    const { offsets } = await stream.publishMany([1, 2, 3].map((data) => ({ type: 'a', data })))
    const consumer = stream.consumer('a/b ü?#')
    expect(await consumer.offset()).toBe(0)
    expect(await consumer.save(offsets[1]!)).toBe(offsets[1])
    expect(await consumer.save(offsets[0]!)).toBe(offsets[1])
    expect((await consumer.read()).events.map(({ offset }) => offset)).toEqual([offsets[2]])
    expect(await consumer.seek(0)).toBe(0)
    expect((await consumer.read({ limit: 2 })).events).toHaveLength(2)
    await expect(consumer.save(9_999_999)).rejects.toEqual(code('OFFSET_AHEAD'))
  })

  it('refuses names that URL parsers would resolve away', () => {
    for (const name of ['.', '..', '']) {
      expect(() => client.stream('s').consumer(name)).toThrow(code('INVALID_NAME'))
      expect(() => client.stream(name)).toThrow(code('INVALID_NAME'))
    }
  })
})

describe('webhooks', () => {
  it('are created, listed by page, read, changed and deleted', async () => {
    const input = { stream: 'hooked', url: 'http://127.0.0.1:9/a' }
    const created = await client.webhooks.create(input)
    expect(created.secret).toMatch(/^whsec_/)
    const second = await client.webhooks.create({ ...input, signature: 'v1a' })
    expect(second.publicKey).toMatch(/^whpk_/)
    const first = await client.webhooks.list({ stream: 'hooked', limit: 1 })
    const rest = await client.webhooks.list({ stream: 'hooked', cursor: first.next! })
    const ids = [...first.webhooks, ...rest.webhooks].map(({ id }) => id)
    expect(ids.toSorted()).toEqual([created.id, second.id].toSorted())
    expect(rest.next).toBeNull()
    expect((await client.webhooks.update(created.id, { rateLimit: 5 })).rateLimit).toBe(5)
    expect(await client.webhooks.get(created.id)).toMatchObject({ rateLimit: 5, url: 'http://127.0.0.1:9/a' })
    await client.webhooks.delete(created.id)
    await expect(client.webhooks.get(created.id)).rejects.toEqual(code('NOT_FOUND'))
  })

  it("have the server's own shapes", () => {
    expectTypeOf<types.Webhook>().toEqualTypeOf<WebhookView>()
    expectTypeOf<types.CreatedWebhook>().toEqualTypeOf<CreatedWebhook>()
    expectTypeOf<types.WebhookInput>().toEqualTypeOf<WebhookInput>()
    expectTypeOf<types.WebhookChange>().toEqualTypeOf<WebhookChange>()
    expectTypeOf<types.WebhookPage>().toEqualTypeOf<WebhookPage>()
    expectTypeOf<types.Health>().toEqualTypeOf<ReadyReport>()
    expectTypeOf<WebhookRules>().not.toBeAny()
  })
})

describe('health', () => {
  it('is told without a key', async () => {
    const health = await createClient({ url: server.url }).health()
    expect(health).toMatchObject({ ready: true, database: 'ok', migrations: 'ok' })
  })
})
