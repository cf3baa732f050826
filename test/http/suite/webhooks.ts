import { readFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { runQuery } from '../../../src/db/run.ts'
import type { CreatedWebhook } from '../../../src/webhooks/create-webhook.ts'
import type { WebhookView } from '../../../src/webhooks/webhook-view.ts'
import { expectJson, expectProblem, streamExists } from './answers.ts'
import { freshName, type Api } from './target.ts'

const targets = JSON.parse(
  readFileSync(new URL('../../vectors/webhook-targets.json', import.meta.url), 'utf8'),
) as Record<'blocked' | 'allowed', { url: string; why: string }[]>

const url = 'https://example.com/hooks'

const sharedSecret = `whsec_${btoa('0123456789abcdef0123456789abcdef')}`
/** A seed, followed by a public key that is another seed's. */
const brokenPair = `whsk_${btoa('s'.repeat(32) + 'p'.repeat(32))}`

async function create(api: Api, input: object): Promise<CreatedWebhook> {
  return expectJson<CreatedWebhook>(await api.call('POST', '/v1/webhooks', { url, ...input }), 201)
}

async function read(api: Api, id: string): Promise<WebhookView> {
  return expectJson<WebhookView>(await api.call('GET', `/v1/webhooks/${id}`), 200)
}

async function publish(api: Api, stream: string, count: number): Promise<number[]> {
  const events = Array.from({ length: count }, (_, i) => ({ type: 'a', data: i }))
  const answer = await api.call('POST', `/v1/streams/${stream}/events`, events)
  return (await expectJson<{ offsets: number[] }>(answer, 201)).offsets
}

async function rowsOf(api: Api, table: 'webhooks' | 'webhookSecrets'): Promise<number> {
  const [row] = await runQuery<{ count: string }>(
    api.db,
    sql`select count(*)::text from ${api.db.tables[table]}`,
  )
  return Number(row?.count)
}

/** Making, reading, changing and deleting webhooks. */
export function webhookSuite(api: Api): void {
  describe('creating a webhook', () => {
    it('answers with the defaults and, this once, the secret', async () => {
      const stream = freshName()
      const { secret, ...view } = await create(api, { stream })
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)
      expect(view).toEqual({
        id: expect.stringMatching(/^wh_[A-Za-z0-9]{20}$/),
        stream,
        url,
        types: null,
        ordering: 'key',
        format: 'standard',
        signature: 'v1',
        state: 'active',
        stateReason: null,
        maxAttempts: 10,
        scheduleMs: null,
        jitterPercent: 20,
        timeoutMs: 15_000,
        rateLimit: null,
        headers: {},
        offset: expect.any(Number),
        lag: 0,
        lagCapped: false,
        retrying: 0,
        blocked: 0,
        dead: 0,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      })
      expect(await streamExists(api, stream)).toBe(true)
      expect(await read(api, view.id)).toEqual(view)
    })

    it('keeps every setting that is given', async () => {
      const settings = {
        stream: freshName(),
        url: 'https://example.com:8443/hooks?x=1',
        types: ['order.*', 'user.created'],
        ordering: 'stream',
        format: 'cloudevents',
        maxAttempts: 50,
        scheduleMs: [0, 1000, 604_800_000],
        jitterPercent: 0,
        timeoutMs: 1000,
        rateLimit: 5,
        headers: { 'x-tenant': 'acme' },
      }
      const { id } = await create(api, settings)
      expect(await read(api, id)).toMatchObject(settings)
    })

    it('keeps a supplied secret, stored neither in the clear elsewhere nor shown again', async () => {
      const secret = sharedSecret
      const created = await create(api, { stream: freshName(), secret })
      expect(created.secret).toBe(secret)
      const answers = [
        await api.call('GET', `/v1/webhooks/${created.id}`),
        await api.call('GET', '/v1/webhooks?limit=100'),
        await api.call('PATCH', `/v1/webhooks/${created.id}`, { timeoutMs: 2000 }),
      ]
      for (const answer of answers) expect(await answer.text()).not.toContain(secret.slice(6))
      const rows = await runQuery<{ sealed: string }>(
        api.db,
        sql`select sealed from ${api.db.tables.webhookSecrets} k where k.webhook_id = ${created.id}`,
      )
      expect(rows).toHaveLength(1)
      expect(rows[0]?.sealed).not.toContain(secret.slice(6))
    })

    it('makes an ed25519 pair for v1a', async () => {
      const created = await create(api, { stream: freshName(), signature: 'v1a' })
      expect(created.secret).toMatch(/^whsk_/)
      expect(created.publicKey).toMatch(/^whpk_/)
      expect(await read(api, created.id)).not.toHaveProperty('secret')
      const again = await create(api, { stream: freshName(), secret: created.secret })
      expect(again).toMatchObject({ signature: 'v1a', publicKey: created.publicKey })
    })

    it('begins with what is published after it, unless told to begin elsewhere', async () => {
      const stream = freshName()
      const offsets = await publish(api, stream, 5)
      const now = await create(api, { stream })
      expect(now).toMatchObject({ lag: 0 })
      expect(now.offset).toBeGreaterThanOrEqual(offsets[4] as number)
      expect(await create(api, { stream, from: 'now' })).toMatchObject({ lag: 0 })
      expect(await create(api, { stream, from: 'start' })).toMatchObject({ offset: 0, lag: 5 })
      const third = offsets[2] as number
      expect(await create(api, { stream, from: third })).toMatchObject({ offset: third, lag: 2 })
      const [next] = await publish(api, stream, 1)
      expect(next).toBeGreaterThan(now.offset)
      expect(await read(api, now.id)).toMatchObject({ lag: 1 })
    })

    it('W1: `now` lies below an event that was numbered before and commits after it', async () => {
      const stream = freshName()
      await publish(api, stream, 1)
      const { offset, inside } = await api.db.transaction(async (tx) => {
        const drawn = await runQuery<{ offset: string }>(
          tx,
          sql`select o_offsets[1]::text as offset from ${sql.identifier(api.db.schema)}.append(
            ${stream}::text, '{a}', '{NULL}', '{1}', '{NULL}', null, null)`,
        )
        // others publish beyond the open one, so that the last number is no help
        await publish(api, stream, 3)
        return { offset: Number(drawn[0]?.offset), inside: await create(api, { stream }) }
      })
      expect(inside.offset).toBeLessThan(offset)
      expect(await read(api, inside.id)).toMatchObject({ lag: 4 })
    })

    it('refuses an offset that was never given out, and then makes no stream', async () => {
      const stream = freshName()
      const answer = await api.call('POST', '/v1/webhooks', { stream, url, from: 900_000_000_000 })
      await expectProblem(answer, 'OFFSET_AHEAD', 'from')
      expect(await streamExists(api, stream)).toBe(false)
    })

    it('makes the stream once when many are created on it at a time', async () => {
      const stream = freshName()
      const made = await Promise.all(Array.from({ length: 8 }, () => create(api, { stream })))
      expect(new Set(made.map(({ id }) => id)).size).toBe(8)
    })

    it('may be on a stream of Millrace itself', async () => {
      expect(await create(api, { stream: 'millrace.webhooks' })).toMatchObject({
        stream: 'millrace.webhooks',
      })
    })

    it.each(targets.blocked)('W6: refuses $url ($why)', async ({ url: target }) => {
      const stream = freshName()
      const answer = await api.call('POST', '/v1/webhooks', { stream, url: target })
      const { code } = (await answer.clone().json()) as { code: 'TARGET_FORBIDDEN' | 'INVALID_INPUT' }
      expect(['TARGET_FORBIDDEN', 'INVALID_INPUT']).toContain(code)
      await expectProblem(answer, code, 'url')
      expect(await streamExists(api, stream)).toBe(false)
    })

    it.each(targets.allowed)('takes $url ($why)', async ({ url: target }) => {
      const { id } = await create(api, { stream: freshName(), url: target })
      expect(await read(api, id)).toMatchObject({ url: target, state: 'active' })
    })

    it.each([
      [{ stream: undefined }, 'INVALID_INPUT', 'stream'],
      [{ url: undefined }, 'INVALID_INPUT', 'url'],
      [{ url: 5 }, 'INVALID_INPUT', 'url'],
      [{ url: `https://example.com/${'p'.repeat(2048)}` }, 'TARGET_FORBIDDEN', 'url'],
      [{ stream: 'a b' }, 'INVALID_NAME', 'stream'],
      [{ types: 'order.*' }, 'INVALID_INPUT', 'types'],
      [{ types: [] }, 'INVALID_INPUT', 'types'],
      [{ types: ['a', 1] }, 'INVALID_INPUT', 'types[1]'],
      [{ types: ['a*b'] }, 'INVALID_INPUT', 'types'],
      [{ types: ['a\u0000'] }, 'INVALID_INPUT', 'types'],
      [{ types: ['\ud800'] }, 'INVALID_INPUT', 'types'],
      [{ ordering: 'keys' }, 'INVALID_INPUT', 'ordering'],
      [{ from: 'end' }, 'INVALID_INPUT', 'from'],
      [{ from: -1 }, 'INVALID_INPUT', 'from'],
      [{ from: 1.5 }, 'INVALID_INPUT', 'from'],
      [{ format: 'xml' }, 'INVALID_INPUT', 'format'],
      [{ signature: 'v2' }, 'INVALID_INPUT', 'signature'],
      [{ maxAttempts: 0 }, 'INVALID_INPUT', 'maxAttempts'],
      [{ maxAttempts: 51 }, 'INVALID_INPUT', 'maxAttempts'],
      [{ maxAttempts: null }, 'INVALID_INPUT', 'maxAttempts'],
      [{ scheduleMs: [] }, 'INVALID_INPUT', 'scheduleMs'],
      [{ scheduleMs: [-1] }, 'INVALID_INPUT', 'scheduleMs[0]'],
      [{ scheduleMs: [5000, 1000] }, 'INVALID_INPUT', 'scheduleMs[0]'],
      [{ jitterPercent: 101 }, 'INVALID_INPUT', 'jitterPercent'],
      [{ timeoutMs: 999 }, 'INVALID_INPUT', 'timeoutMs'],
      [{ timeoutMs: 30_001 }, 'INVALID_INPUT', 'timeoutMs'],
      [{ rateLimit: 0 }, 'INVALID_INPUT', 'rateLimit'],
      [{ headers: { 'webhook-id': 'x' } }, 'INVALID_INPUT', 'headers.webhook-id'],
      [{ headers: { host: 'x' } }, 'INVALID_INPUT', 'headers.host'],
      [{ headers: { 'x-a': 'b\r\nc: d' } }, 'INVALID_INPUT', 'headers.x-a'],
      [{ headers: { 'x-a': 1 } }, 'INVALID_INPUT', 'headers.x-a'],
      [{ headers: 'x' }, 'INVALID_INPUT', 'headers'],
      [{ headers: [] }, 'INVALID_INPUT', 'headers'],
      [{ typs: ['a'] }, 'INVALID_INPUT', 'typs'],
    ] as const)('refuses %j with %s, naming %s, and stores nothing', async (fault, code, field) => {
      const before = [await rowsOf(api, 'webhooks'), await rowsOf(api, 'webhookSecrets')]
      const stream = freshName()
      const answer = await api.call('POST', '/v1/webhooks', { stream, url, ...fault })
      await expectProblem(answer, code, field)
      expect([await rowsOf(api, 'webhooks'), await rowsOf(api, 'webhookSecrets')]).toEqual(before)
      expect(await streamExists(api, stream)).toBe(false)
    })

    it.each([
      { secret: 'whsec_' },
      { secret: 'whsec_c2hvcnQ=' },
      { secret: 'whsec_not-base64-not-base64-not-base64-not-base64' },
      { secret: 'hunter2hunter2hunter2hunter2hunter2' },
      { secret: 12_345_678 },
      { secret: sharedSecret, signature: 'v1a' },
      { secret: brokenPair },
    ])('refuses the secret of %j, without repeating it', async (fault) => {
      const answer = await api.call('POST', '/v1/webhooks', { stream: freshName(), url, ...fault })
      const { detail } = await expectProblem(answer, 'INVALID_INPUT', 'secret')
      expect(detail.replaceAll(/whs(ec|k)_/g, '')).not.toContain(
        String(fault.secret).replace(/^whs(ec|k)_/, '') || '_',
      )
    })

    it('refuses a body that is no object, is too large, or names a field twice', async () => {
      await expectProblem(await api.call('POST', '/v1/webhooks', '[]'), 'INVALID_INPUT', 'body')
      await expectProblem(await api.call('POST', '/v1/webhooks', '{"url":'), 'INVALID_JSON', 'body')
      const twice = `{"stream":"a","url":"${url}","url":"${url}"}`
      await expectProblem(await api.call('POST', '/v1/webhooks', twice), 'INVALID_INPUT', 'body')
      const large = { stream: 'a', url, headers: { 'x-a': 'x'.repeat(70_000) } }
      await expectProblem(await api.call('POST', '/v1/webhooks', large), 'BODY_TOO_LARGE', 'body')
    })
  })

  describe('listing webhooks', () => {
    it('pages through those of a stream, each exactly once', async () => {
      const stream = freshName()
      const made: string[] = []
      for (let i = 0; i < 5; i++) made.push((await create(api, { stream })).id)
      await create(api, { stream: freshName() })
      const seen: string[] = []
      let cursor: string | null = ''
      for (let page = 0; page < 3; page++) {
        const query = `stream=${stream}&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`
        const answer = await api.call('GET', `/v1/webhooks?${query}`)
        const found: { webhooks: WebhookView[]; next: string | null } = await expectJson(answer, 200)
        seen.push(...found.webhooks.map(({ id }) => id))
        expect(found.next === null).toBe(page === 2)
        cursor = found.next
      }
      expect(seen.toSorted()).toEqual(made.toSorted())
    })

    it.each([
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['cursor=x', 'cursor'],
      ['cursor=%00', 'cursor'],
      ['curser=x', 'curser'],
    ])('refuses ?%s, naming %s', async (query, field) => {
      await expectProblem(await api.call('GET', `/v1/webhooks?${query}`), 'INVALID_INPUT', field)
    })
  })

  describe('changing a webhook', () => {
    it('changes what is named and leaves the rest; null takes the default', async () => {
      const stream = freshName()
      const given = {
        types: ['a'],
        rateLimit: 3,
        scheduleMs: [0, 5],
        headers: { 'x-a': '1' },
        maxAttempts: 2,
      }
      const { id, secret: _, ...before } = await create(api, { stream, ...given })
      const patch = async (change: object) =>
        expectJson<WebhookView>(await api.call('PATCH', `/v1/webhooks/${id}`, change), 200)
      expect(await patch({})).toEqual({ id, ...before })
      const moved = { ...before, id, url: 'https://example.org/new', timeoutMs: 3000, types: ['b.*'] }
      expect(await patch({ url: moved.url, timeoutMs: 3000, types: ['b.*'] })).toEqual(moved)
      const cleared = { types: null, rateLimit: null, scheduleMs: null, headers: null }
      expect(await patch(cleared)).toEqual({ ...moved, ...cleared, headers: {} })
      expect(await read(api, id)).toEqual({ ...moved, ...cleared, headers: {} })
    })

    it.each([
      [{ ordering: 'none' }, 'INVALID_INPUT', 'ordering'],
      [{ stream: 'other' }, 'INVALID_INPUT', 'stream'],
      [{ secret: 'x' }, 'INVALID_INPUT', 'secret'],
      [{ state: 'active' }, 'INVALID_INPUT', 'state'],
      [{ url: null }, 'INVALID_INPUT', 'url'],
      [{ timeoutMs: null }, 'INVALID_INPUT', 'timeoutMs'],
      [{ types: [] }, 'INVALID_INPUT', 'types'],
      [{ headers: { connection: 'close' } }, 'INVALID_INPUT', 'headers.connection'],
      [{ url: 'https://127.0.0.1/' }, 'TARGET_FORBIDDEN', 'url'],
    ] as const)('refuses %j with %s, naming %s, and changes nothing', async (change, code, field) => {
      const { id, secret: _, ...before } = await create(api, { stream: freshName() })
      const answer = await api.call('PATCH', `/v1/webhooks/${id}`, { maxAttempts: 3, ...change })
      await expectProblem(answer, code, field)
      expect(await read(api, id)).toEqual({ id, ...before })
    })
  })

  describe('deleting a webhook', () => {
    it('takes its secret with it, and is final', async () => {
      const { id } = await create(api, { stream: freshName() })
      const answer = await api.call('DELETE', `/v1/webhooks/${id}`)
      expect({ status: answer.status, text: await answer.text() }).toEqual({ status: 204, text: '' })
      for (const method of ['GET', 'DELETE']) {
        await expectProblem(await api.call(method, `/v1/webhooks/${id}`), 'NOT_FOUND')
      }
      await expectProblem(await api.call('PATCH', `/v1/webhooks/${id}`, {}), 'NOT_FOUND')
      const secrets = await runQuery(
        api.db,
        sql`select 1 from ${api.db.tables.webhookSecrets} k where k.webhook_id = ${id}`,
      )
      expect(secrets).toEqual([])
    })

    it('knows no other ids', async () => {
      for (const id of ['wh_0', 'wh_00000000000000000000', 'wh_0000000000000000000%00', '%27']) {
        await expectProblem(await api.call('DELETE', `/v1/webhooks/${id}`), 'NOT_FOUND')
      }
    })
  })
}
