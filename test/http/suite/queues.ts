import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Claimed {
  id: number
  lease: string
  attempt: number
  type: string | null
  data: unknown
  headers: Record<string, string> | null
}

interface Result {
  id: number
  held: boolean
  dead?: boolean
}

async function claim(api: Api, base: string, body?: object): Promise<Claimed[]> {
  const answer = await api.call('POST', `${base}/claim`, body)
  return (await expectJson<{ messages: Claimed[] }>(answer, 200)).messages
}

async function settle(api: Api, path: string, items: object[]): Promise<Result[]> {
  return (await expectJson<{ results: Result[] }>(await api.call('POST', path, items), 200)).results
}

const leaseOf = ({ id, lease }: Claimed) => ({ id, lease })

async function count(api: Api, base: string): Promise<Record<string, unknown>> {
  return expectJson(await api.call('GET', base), 200)
}

/** Queues over HTTP: send, claim, settle, dead letters. */
export function queueSuite(api: Api): void {
  const fresh = (): string => `/v1/queues/${freshName('q')}`

  describe('a queue', () => {
    it('is sent to, claimed from and settled in two round trips, each message once', async () => {
      const base = fresh()
      const sent = await expectJson<{ id: number; duplicate: boolean }>(
        await api.call('POST', `${base}/messages`, { type: 'mail', data: { to: 'a' }, headers: { x: '1' } }),
        201,
      )
      expect(sent.duplicate).toBe(false)
      const [message, ...more] = await claim(api, base)
      expect(more).toEqual([])
      expect(message).toMatchObject({
        id: sent.id,
        attempt: 1,
        type: 'mail',
        data: { to: 'a' },
        headers: { x: '1' },
      })
      expect(await claim(api, base)).toEqual([])
      expect(await settle(api, `${base}/ack`, [leaseOf(message!)])).toEqual([{ id: sent.id, held: true }])
      expect(await count(api, base)).toMatchObject({ ready: 0, leased: 0, dead: 0 })
    })

    it('takes a list all or none, and hands out data byte for byte', async () => {
      const base = fresh()
      const data = '{"b": 1.0e+2,  "a":12345678901234567890, "b2":"\\u00e9"}'
      const body = `[{"data":${data}}, {"data": null,"priority":-1}]`
      const sent = await expectJson<{ messages: { id: number }[] }>(
        await api.call('POST', `${base}/messages`, body),
        201,
      )
      const answer = await api.call('POST', `${base}/claim`, { limit: 5 })
      const text = await answer.text()
      expect(text).toContain(`"data":${data}`)
      const { messages } = JSON.parse(text) as { messages: Claimed[] }
      expect(messages.map(({ id }) => id)).toEqual([sent.messages[1]!.id, sent.messages[0]!.id])
      const bad = await api.call('POST', `${base}/messages`, [{ data: 1 }, { data: 2, priority: 1.5 }])
      await expectProblem(bad, 'INVALID_INPUT', '[1].priority')
      expect(await count(api, base)).toMatchObject({ ready: 0, leased: 2 })
    })

    it('Q1: answers for each item whether its lease held, and a stale one changes nothing', async () => {
      const base = fresh()
      await api.call('POST', `${base}/messages`, [{ data: 1 }, { data: 2 }])
      const [first, second] = await claim(api, base, { limit: 2 })
      const stale = { id: first!.id, lease: crypto.randomUUID() }
      for (const [action, more] of [
        ['ack', {}],
        ['return', {}],
        ['retry', {}],
        ['extend', {}],
        ['fail', { reason: 'stale' }],
      ] as const) {
        const [result] = await settle(api, `${base}/${action}`, [{ ...stale, ...more }])
        expect(result).toMatchObject({ id: first!.id, held: false })
      }
      expect(await count(api, base)).toMatchObject({ leased: 2, dead: 0, delayed: 0 })
      expect(await settle(api, `${base}/ack`, [stale, leaseOf(second!)])).toEqual([
        { id: first!.id, held: false },
        { id: second!.id, held: true },
      ])
      expect(await count(api, base)).toMatchObject({ leased: 1 })
      expect(await settle(api, `${base}/extend?leaseMs=60000`, [leaseOf(first!)])).toEqual([
        { id: first!.id, held: true },
      ])
    })

    it('N1: holds a claim back until there is a message, or its time is up', async () => {
      const base = fresh()
      const waiting = claim(api, base, { waitMs: 30_000 })
      await expectJson(await api.call('POST', `${base}/messages`, { data: 'awaited' }), 201)
      const [message] = await waiting
      expect(message).toMatchObject({ data: 'awaited' })
      await settle(api, `${base}/ack`, [leaseOf(message!)])
      const answer = await api.call('POST', `${base}/claim`, { waitMs: 50 })
      expect(await expectJson(answer, 200)).toEqual({ messages: [], nextDueMs: null })
    })

    it('tries again what is retried, and counts the attempt; what is returned was none', async () => {
      const base = fresh()
      await api.call('POST', `${base}/messages`, { data: 1, maxAttempts: 2 })
      const [first] = await claim(api, base)
      const again = { ...leaseOf(first!), delayMs: 0, error: 'busy' }
      expect(await settle(api, `${base}/retry`, [again])).toEqual([
        { id: first!.id, held: true, dead: false },
      ])
      const [second] = await claim(api, base)
      expect(second).toMatchObject({ attempt: 2, lastError: 'busy' })
      await settle(api, `${base}/return`, [leaseOf(second!)])
      const [third] = await claim(api, base)
      expect(third?.attempt).toBe(2)
      const last = await settle(api, `${base}/retry`, [{ ...leaseOf(third!), delayMs: 0 }])
      expect(last).toEqual([{ id: first!.id, held: true, dead: true }])
    })

    it('lists dead letters in pages, sends them again, and deletes them', async () => {
      const base = fresh()
      await api.call(
        'POST',
        `${base}/messages`,
        [1, 2, 3].map((data) => ({ data })),
      )
      const messages = await claim(api, base, { limit: 3 })
      const failures = messages.map((message) => ({ ...leaseOf(message), reason: 'broken' }))
      await settle(api, `${base}/fail`, failures)
      const page = async (query: string) =>
        expectJson<{ dead: Claimed[]; next: number | null }>(
          await api.call('GET', `${base}/dead${query}`),
          200,
        )
      const first = await page('?limit=2')
      expect(first.dead).toMatchObject([
        { data: 1, reason: 'broken', attempts: 1 },
        { data: 2, reason: 'broken', attempts: 1 },
      ])
      const rest = await page(`?cursor=${first.next}`)
      expect(rest).toMatchObject({ dead: [{ data: 3 }], next: null })
      const ids = [messages[0]!.id]
      expect(await expectJson(await api.call('POST', `${base}/redrive`, { ids }), 200)).toEqual({
        redriven: ids,
      })
      expect((await claim(api, base))[0]).toMatchObject({ id: ids[0], attempt: 1 })
      const named = await api.call('DELETE', `${base}/dead?id=${messages[1]!.id}`)
      expect(await expectJson(named, 200)).toEqual({ deleted: 1 })
      expect(await expectJson(await api.call('DELETE', `${base}/dead`), 200)).toEqual({ deleted: 1 })
      expect(await count(api, base)).toMatchObject({ dead: 0 })
    })

    it('is listed in pages, with what is in it, and keeps finished messages for as long as it is told', async () => {
      const prefix = freshName('list')
      for (const end of ['a', 'b', 'c'])
        await api.call('POST', `/v1/queues/${prefix}${end}/messages`, { data: 1 })
      const list = async (query: string) =>
        expectJson<{ queues: { name: string; ready: number }[]; next: string | null }>(
          await api.call('GET', `/v1/queues?${query}`),
          200,
        )
      const page = await list(`cursor=${prefix}&limit=2`)
      expect(page.queues).toMatchObject([
        { name: `${prefix}a`, ready: 1 },
        { name: `${prefix}b`, ready: 1 },
      ])
      expect(page.next).toBe(`${prefix}b`)
      expect((await list(`cursor=${page.next}&limit=1`)).queues[0]?.name).toBe(`${prefix}c`)
      const path = `/v1/queues/${prefix}a`
      await expectJson(await api.call('PATCH', path, { retainFinishedMs: 60_000 }), 200)
      expect(await count(api, path)).toMatchObject({ retainFinishedMs: 60_000 })
      await expectProblem(await api.call('GET', `/v1/queues/${prefix}`), 'NOT_FOUND')
      await expectProblem(await api.call('GET', '/v1/queues?limit=0'), 'INVALID_INPUT', 'limit')
    })

    it.each([
      ['messages', '{}', 'INVALID_INPUT', 'data'],
      ['messages', '[]', 'INVALID_INPUT', 'body'],
      ['messages', '3', 'INVALID_INPUT', 'body'],
      ['messages', '{"data":1,"dalay":1}', 'INVALID_INPUT', 'dalay'],
      ['messages', '[{"data":1},{"data":1,"dalay":1}]', 'INVALID_INPUT', '[1].dalay'],
      ['messages', '{"data":1,"data":2}', 'INVALID_INPUT', 'body'],
      ['messages', '{"data":1,"at":"tomorrow"}', 'INVALID_INPUT', 'at'],
      ['messages', '{"data":1,"at":"2030-01-01T00:00:00Z","delayMs":1}', 'INVALID_INPUT', 'at'],
      ['messages', '{"data":1,"backoff":{"base":1}}', 'INVALID_INPUT', 'backoff.base'],
      ['messages', '{"data":1,"headers":{"x":1}}', 'INVALID_INPUT', 'headers.x'],
      ['messages', '{"data":1', 'INVALID_JSON', 'body'],
      ['claim', '{"limits":1}', 'INVALID_INPUT', 'limits'],
      ['claim', '{"leaseMs":0}', 'INVALID_INPUT', 'leaseMs'],
      ['claim', '{"leaseMs":0,"waitMs":1}', 'INVALID_INPUT', 'leaseMs'],
      ['claim', '{"waitMs":30001}', 'INVALID_INPUT', 'waitMs'],
      ['ack', '{}', 'INVALID_INPUT', 'body'],
      ['ack', '[{"id":1}]', 'INVALID_INPUT', '[0].lease'],
      ['ack', '[{"id":1,"lease":"x","reason":"y"}]', 'INVALID_INPUT', '[0].reason'],
      ['ack', '[{"id":1,"id":2,"lease":"x"}]', 'INVALID_INPUT', '[0]'],
      ['fail', '[{"id":1,"lease":"x"}]', 'INVALID_INPUT', '[0].reason'],
      ['retry', '[{"id":1,"lease":"x","delayMs":-1}]', 'INVALID_INPUT', 'delayMs'],
      ['redrive', '{"id":[1]}', 'INVALID_INPUT', 'id'],
    ] as const)('refuses %s of %s', async (action, body, code, field) => {
      const base = fresh()
      await expectProblem(await api.call('POST', `${base}/${action}`, body), code, field)
      await expectProblem(await api.call('GET', base), 'NOT_FOUND')
    })

    it('refuses data over the limit, and the names that are reserved', async () => {
      const data = 'x'.repeat(1_048_576)
      await expectProblem(await api.call('POST', `${fresh()}/messages`, { data }), 'BODY_TOO_LARGE', 'data')
      await expectProblem(
        await api.call('POST', '/v1/queues/millrace.x/messages', { data: 1 }),
        'INVALID_NAME',
        'queue',
      )
    })
  })

  describe('a topic', () => {
    it('feeds every bound queue, and nobody when none is bound', async () => {
      const [topic, one, two] = [freshName('t'), freshName('q'), freshName('q')]
      const base = `/v1/topics/${topic}`
      const publish = async () => expectJson(await api.call('POST', `${base}/messages`, [{ data: 1 }]), 201)
      expect(await publish()).toEqual({ queues: 0, sent: 0 })
      await expectJson(await api.call('PUT', `${base}/queues/${one}`), 201)
      await expectJson(await api.call('PUT', `${base}/queues/${two}`), 201)
      await expectJson(await api.call('PUT', `${base}/queues/${two}`), 200)
      expect(await publish()).toEqual({ queues: 2, sent: 2 })
      expect(await claim(api, `/v1/queues/${one}`)).toMatchObject([{ data: 1 }])
      expect(await claim(api, `/v1/queues/${two}`)).toMatchObject([{ data: 1 }])
      expect((await api.call('DELETE', `${base}/queues/${two}`)).status).toBe(204)
      await expectProblem(await api.call('DELETE', `${base}/queues/${two}`), 'NOT_FOUND')
      expect(await expectJson(await api.call('GET', base), 200)).toEqual({ topic, queues: [one], next: null })
    })

    it('is listed, and its queues are, a page at a time', async () => {
      const topic = freshName('t')
      const base = `/v1/topics/${topic}`
      for (const queue of ['b', 'a', 'C']) await api.call('PUT', `${base}/queues/${queue}-${topic}`)
      const page = async (query: string) => expectJson(await api.call('GET', `${base}?limit=2${query}`), 200)
      expect(await page('')).toEqual({ topic, queues: [`C-${topic}`, `a-${topic}`], next: `a-${topic}` })
      expect(await page(`&cursor=a-${topic}`)).toEqual({ topic, queues: [`b-${topic}`], next: null })
      const before = topic.slice(0, -1)
      const listed = await api.call('GET', `/v1/topics?limit=1&cursor=${before}`)
      expect(await expectJson(listed, 200)).toMatchObject({ topics: [{ topic, queues: 3 }] })
      await expectProblem(await api.call('GET', `${base}?limit=0`), 'INVALID_INPUT', 'limit')
      await expectProblem(await api.call('GET', '/v1/topics?page=1'), 'INVALID_INPUT', 'page')
    })
  })
}
