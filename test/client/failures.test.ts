import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'

let server: ApiServer
let other: Receiver

beforeAll(async () => {
  server = await startApiServer()
  other = await startReceiver()
})
afterAll(async () => {
  await other.close()
  await server.close()
})
afterEach(() => other.answer({}))

const json = { 'content-type': 'application/problem+json' }

/** What a read of a stream throws when somebody answers like this. */
async function failureOf(status: number, headers: Record<string, string>, body: string): Promise<unknown> {
  other.answer({ status, headers, body })
  return createClient({ url: other.url, key: 'k' })
    .stream('s')
    .read()
    .then(
      () => 'no failure',
      (error: unknown) => error,
    )
}

describe('a refusal of the server', () => {
  it('comes with its code, words and details', async () => {
    const client = createClient({ url: server.url, key: server.rootKey })
    const refused = client.stream('orders').publish({ type: '', data: 1 })
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: 'type must not be empty',
      details: { field: 'type' },
    })
    const ahead = client.stream('orders').read({ after: 77 })
    await expect(ahead).rejects.toMatchObject({ code: 'OFFSET_AHEAD', details: { field: 'after', last: 0 } })
  })

  it('is spared what has no JSON form: it is refused here, by its field', async () => {
    const client = createClient({ url: server.url, key: server.rootKey })
    const big = { data: { n: 1n } }
    const calls = {
      data: () => client.stream('orders').publish({ type: 'a', ...big }),
      '[1].data': () => client.queue('mail').sendMany([{ data: 1 }, big]),
      headers: () => client.stream('orders').publish({ type: 'a', data: 1, headers: { n: 1n as never } }),
      type: () => client.stream('orders').publish({ data: 1 } as never),
      offset: () =>
        client
          .stream('orders')
          .consumer('c')
          .save(1n as never),
      name: () => client.keys.create({ name: 1n as never, scopes: [] }),
      ttlMs: () => client.lock('l').acquire({ ttlMs: 1n as never }),
      limit: () => client.queue('mail').claim({ limit: 1n as never }),
      '[1].lease': () =>
        client.queue('mail').ack([
          { id: 1, lease: 'x' },
          { id: 2, lease: 1n as never },
        ]),
      retainFinishedMs: () => client.queue('mail').configure({ retainFinishedMs: 1n as never }),
      url: () => client.webhooks.create({ stream: 'orders', url: 1n as never }),
      rateLimit: () => client.webhooks.update('wh_1', { rateLimit: 1n as never }),
      payload: () => client.notify('c', 1n as never),
    }
    for (const [field, call] of Object.entries(calls))
      await expect(call()).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field } })
  })

  it('is UNAUTHORIZED without a key, and with a wrong one', async () => {
    for (const key of [null, 'wrong']) {
      const refused = createClient({ url: server.url, key }).stream('orders').read()
      await expect(refused).rejects.toMatchObject({ code: 'UNAUTHORIZED', status: 401 })
    }
  })

  it('becomes INTERNAL with its text when its code is unknown here', async () => {
    const error = await failureOf(418, json, '{"code":"TEAPOT","detail":"short and stout","spout":1}')
    expect(error).toMatchObject({
      code: 'INTERNAL',
      message: 'TEAPOT: short and stout',
      details: { code: 'TEAPOT', status: 418, spout: 1 },
    })
  })

  it('does not take names every object has for codes', async () => {
    expect(await failureOf(400, json, '{"code":"toString"}')).toMatchObject({ code: 'INTERNAL' })
  })
})

describe('somebody else at the address', () => {
  it('is told by what it says, cut short', async () => {
    const error = await failureOf(404, { 'content-type': 'text/html' }, `<h1>No</h1>${'x'.repeat(5000)}`)
    expect(error).toMatchObject({ code: 'INTERNAL', details: { status: 404 } })
    expect((error as Error).message).toMatch(
      /^got status 404 and "<h1>No<\/h1>x+", which is no answer of Millrace$/,
    )
    expect((error as Error).message.length).toBeLessThan(300)
  })

  it('is INTERNAL too when it answers 200 with no JSON', async () => {
    expect(await failureOf(200, { 'content-type': 'text/html' }, 'hello')).toMatchObject({ code: 'INTERNAL' })
  })

  it.each([502, 503, 504])('is a passing trouble when it is a proxy that answers %i', async (status) => {
    expect(await failureOf(status, {}, '')).toMatchObject({ code: 'SERVER_UNREACHABLE', retryable: true })
  })
})

describe('no answer', () => {
  it('is SERVER_UNREACHABLE and names the address', async () => {
    const closed = await startReceiver()
    await closed.close()
    const asked = createClient({ url: `${closed.url}/` }).health()
    await expect(asked).rejects.toMatchObject({
      code: 'SERVER_UNREACHABLE',
      message: `nothing answers at ${closed.url}`,
      details: { url: closed.url },
    })
  })

  it('is SERVER_UNREACHABLE when it does not come in time', async () => {
    other.answer({ until: new Promise(() => {}) })
    const asked = createClient({ url: other.url, timeoutMs: 50 }).health()
    await expect(asked).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE', message: /within 50 ms/ })
  })

  it('is SERVER_UNREACHABLE when it breaks off', async () => {
    const broken = await serveWith((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"events":', () => response.destroy())
    })
    const asked = createClient({ url: broken.url }).stream('s').read()
    await expect(asked).rejects.toMatchObject({ code: 'SERVER_UNREACHABLE' })
    await broken.close()
  })

  it('is ABORTED when the caller gave up', async () => {
    other.answer({ until: new Promise(() => {}) })
    const stop = new AbortController()
    const asked = createClient({ url: other.url }).stream('s').read({ signal: stop.signal })
    await other.waitFor(() => other.open() > 0)
    stop.abort()
    await expect(asked).rejects.toMatchObject({ code: 'ABORTED' })
  })
})

describe('the options', () => {
  it.each(['localhost:8787', 'ftp://a', '', 'http://user:secret@a', 'http://a/?b=1'])(
    'refuse the address %j without repeating it',
    (url) => {
      const made = () => createClient({ url })
      expect(made).toThrow(expect.objectContaining({ code: 'INVALID_INPUT', details: { field: 'url' } }))
      expect(made).not.toThrow('secret')
    },
  )

  it('refuse a key that no header can hold', () => {
    expect(() => createClient({ url: 'http://a', key: 'a\nb' })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', details: { field: 'key' } }),
    )
  })

  it('keep the path of the address, and use the fetch that was given', async () => {
    const asked: string[] = []
    const fetch: typeof globalThis.fetch = async (input) => {
      asked.push(String(input))
      return Response.json({ ready: true })
    }
    await createClient({ url: 'https://host/proxied/', fetch }).health()
    expect(asked).toEqual(['https://host/proxied/readyz'])
  })
})

async function serveWith(listener: RequestListener): Promise<{ url: string; close(): Promise<void> }> {
  const http = createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => void http.close(() => resolve())),
  }
}
