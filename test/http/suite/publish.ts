import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem, storedEvents, streamExists } from './answers.ts'
import { freshName, type Api } from './target.ts'

/** One event, a list, NDJSON; what is refused by name; idempotency. */
export function publishSuite(api: Api): void {
  describe('publishing', () => {
    it('answers one event with its offset, and a list with offsets in order', async () => {
      const path = `/v1/streams/${freshName()}/events`
      const one = await expectJson<{ offset: number }>(
        await api.call('POST', path, { type: 'order.created', data: { id: 1 } }),
        201,
      )
      const events = [1, 2, 3].map((id) => ({ type: 'order.created', data: { id }, key: `k${id}` }))
      const many = await expectJson<{ offsets: number[] }>(await api.call('POST', path, events), 201)
      expect(many.offsets).toHaveLength(3)
      expect([one.offset, ...many.offsets]).toEqual([one.offset, ...many.offsets].toSorted((a, b) => a - b))
      const single = await expectJson(await api.call('POST', path, [{ type: 'a', data: 1 }]), 201)
      expect(single).toEqual({ offsets: [expect.any(Number)] })
    })

    it('takes NDJSON, one event a line, blank lines and CRLF included', async () => {
      const stream = freshName()
      const body = '{"type":"a","data":1.0}\r\n\n{"type":"b","data":{"x": 1 }}\n'
      const headers = { 'content-type': 'application/x-ndjson; charset=utf-8' }
      const answer = await api.call('POST', `/v1/streams/${stream}/events`, body, headers)
      expect((await expectJson<{ offsets: number[] }>(answer, 201)).offsets).toHaveLength(2)
      const read = await (await api.call('GET', `/v1/streams/${stream}/events`)).text()
      expect(read).toContain('"type":"a","key":null,"data":1.0,')
      expect(read).toContain('"data":{"x": 1 },')
    })

    it('stores key and headers, and takes null for none', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      await api.call('POST', path, { type: 'a', data: 1, key: 'k', headers: { trace: 't', __proto__x: 'y' } })
      await api.call('POST', path, { type: 'a', data: 2, key: null, headers: null })
      const page = await expectJson<{ events: unknown[] }>(await api.call('GET', path), 200)
      expect(page.events).toMatchObject([
        { key: 'k', headers: { trace: 't', __proto__x: 'y' }, data: 1 },
        { key: null, headers: null, data: 2 },
      ])
    })

    it('stores all events of a list or none', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const answer = await api.call('POST', path, [
        { type: 'a', data: 1 },
        { type: 'b', data: 2 },
        { type: '', data: 3 },
      ])
      await expectProblem(answer, 'INVALID_INPUT', '[2].type')
      const ndjson = await api.call('POST', path, '{"type":"a","data":1}\n{"type":"b","data":}', {
        'content-type': 'application/x-ndjson',
      })
      await expectProblem(ndjson, 'INVALID_JSON', '[1]')
      expect(await streamExists(api, stream)).toBe(false)
    })

    it.each([
      ['[]', 'INVALID_INPUT', 'body'],
      ['', 'INVALID_JSON', 'body'],
      ['"text"', 'INVALID_INPUT', 'body'],
      ['null', 'INVALID_INPUT', 'body'],
      ['[1]', 'INVALID_INPUT', '[0]'],
      ['[[]]', 'INVALID_INPUT', '[0]'],
      ['{"type":"a","data":1', 'INVALID_JSON', 'body'],
      ['{"type":"a","data":1} {}', 'INVALID_JSON', 'body'],
      ['{"data":1}', 'INVALID_INPUT', 'type'],
      ['{"type":"a"}', 'INVALID_INPUT', 'data'],
      ['{"type":7,"data":1}', 'INVALID_INPUT', 'type'],
      ['{"type":"","data":1}', 'INVALID_INPUT', 'type'],
      ['{"type":"a\\u0000","data":1}', 'INVALID_INPUT', 'type'],
      ['{"type":"\\ud800","data":1}', 'INVALID_INPUT', 'type'],
      [`{"type":"${'t'.repeat(257)}","data":1}`, 'INVALID_INPUT', 'type'],
      ['{"typ":"a","data":1}', 'INVALID_INPUT', 'typ'],
      ['[{"type":"a","data":1},{"type":"a","data":1,"kee":"x"}]', 'INVALID_INPUT', '[1].kee'],
      ['{"type":"a","data":1,"data":2}', 'INVALID_INPUT', 'body'],
      ['{"type":"a","data":1,"\\u0064ata":2}', 'INVALID_INPUT', 'body'],
      ['{"type":"a","data":1,"key":5}', 'INVALID_INPUT', 'key'],
      ['{"type":"a","data":1,"key":""}', 'INVALID_INPUT', 'key'],
      [`{"type":"a","data":1,"key":"${'k'.repeat(513)}"}`, 'INVALID_INPUT', 'key'],
      ['{"type":"a","data":1,"headers":"x"}', 'INVALID_INPUT', 'headers'],
      ['{"type":"a","data":1,"headers":[]}', 'INVALID_INPUT', 'headers'],
      ['{"type":"a","data":1,"headers":{"x":1}}', 'INVALID_INPUT', 'headers.x'],
      ['{"type":"a","data":1,"headers":{"x":"1","x":"2"}}', 'INVALID_INPUT', 'headers'],
      [`{"type":"a","data":1,"headers":{"x":"${'h'.repeat(8192)}"}}`, 'INVALID_INPUT', 'headers'],
    ] as const)('refuses %.60s with %s, naming %s, and stores nothing', async (body, code, field) => {
      const stream = freshName()
      await expectProblem(await api.call('POST', `/v1/streams/${stream}/events`, body), code, field)
      expect(await streamExists(api, stream)).toBe(false)
    })

    it.each(['-a', 'a%20b', 'a%2Fb', 'millrace.own', 'n'.repeat(129), '%E2%82%AC'])(
      'refuses the stream name %.40s',
      async (name) => {
        const answer = await api.call('POST', `/v1/streams/${name}/events`, { type: 'a', data: 1 })
        await expectProblem(answer, 'INVALID_NAME', 'stream')
      },
    )

    it('refuses bytes that are not UTF-8', async () => {
      const stream = freshName()
      const head = new TextEncoder().encode('{"type":"a","data":"')
      const bytes = new Uint8Array([...head, 0xc3, 0x28, 0x22, 0x7d])
      const answer = await api.raw(`/v1/streams/${stream}/events`, {
        method: 'POST',
        body: bytes,
        headers: { authorization: `Bearer ${api.rootKey}`, 'content-type': 'application/json' },
      })
      await expectProblem(answer, 'BAD_REQUEST', 'body')
      expect(await streamExists(api, stream)).toBe(false)
    })

    it.each([
      ['text/plain', 'content-type'],
      ['application/x-www-form-urlencoded', 'content-type'],
      ['application/json; charset=iso-8859-1', 'content-type'],
      ['application/json5', 'content-type'],
    ])('takes no %s', async (type, field) => {
      const path = `/v1/streams/${freshName()}/events`
      const answer = await api.call('POST', path, '{"type":"a","data":1}', { 'content-type': type })
      await expectProblem(answer, 'UNSUPPORTED_MEDIA_TYPE', field)
    })

    it('takes a body without a Content-Type as JSON, and none that is compressed', async () => {
      const path = `/v1/streams/${freshName()}/events`
      const bytes = new TextEncoder().encode('{"type":"a","data":1}')
      const authorization = `Bearer ${api.rootKey}`
      const plain = await api.raw(path, { method: 'POST', body: bytes, headers: { authorization } })
      await expectJson(plain, 201)
      const headers = { authorization, 'content-encoding': 'gzip' }
      const packed = await api.raw(path, { method: 'POST', body: bytes, headers })
      await expectProblem(packed, 'UNSUPPORTED_MEDIA_TYPE', 'content-encoding')
    })
  })

  describe('an idempotent publish', () => {
    it('of 20 at once stores one event, and gives all the same offset', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          api.call('POST', path, { type: 'a', data: 1 }, { 'idempotency-key': 'order-7' }),
        ),
      )
      const bodies = await Promise.all(answers.map((answer) => expectJson<{ offset: number }>(answer, 201)))
      expect(new Set(bodies.map((body) => body.offset)).size).toBe(1)
      const replayed = answers.filter((answer) => answer.headers.get('idempotent-replayed') === 'true')
      expect(replayed).toHaveLength(19)
      expect(await storedEvents(api, stream)).toBe(1)
    })

    it('replays the offsets of a list', async () => {
      const path = `/v1/streams/${freshName()}/events`
      const events = [
        { type: 'a', data: 1 },
        { type: 'b', data: 2 },
      ]
      const first = await api.call('POST', path, events, { 'idempotency-key': 'k' })
      const again = await api.call('POST', path, events, { 'idempotency-key': 'k' })
      expect(first.headers.has('idempotent-replayed')).toBe(false)
      expect(await again.text()).toBe(await first.text())
    })

    it('refuses the key with other content, and remembers it per stream', async () => {
      const stream = freshName()
      const key = { 'idempotency-key': 'k' }
      await api.call('POST', `/v1/streams/${stream}/events`, { type: 'a', data: 1 }, key)
      const other = await api.call('POST', `/v1/streams/${stream}/events`, { type: 'a', data: 2 }, key)
      await expectProblem(other, 'IDEMPOTENCY_CONFLICT')
      expect(await storedEvents(api, stream)).toBe(1)
      const elsewhere = await api.call(
        'POST',
        `/v1/streams/${freshName()}/events`,
        { type: 'a', data: 2 },
        key,
      )
      expect(elsewhere.headers.has('idempotent-replayed')).toBe(false)
      await expectJson(elsewhere, 201)
    })

    it.each(['', 'k'.repeat(257)])('refuses the key "%.10s"', async (key) => {
      const stream = freshName()
      const event = { type: 'a', data: 1 }
      const answer = await api.call('POST', `/v1/streams/${stream}/events`, event, { 'idempotency-key': key })
      await expectProblem(answer, 'INVALID_INPUT', 'Idempotency-Key')
      expect(await streamExists(api, stream)).toBe(false)
    })
  })
}
