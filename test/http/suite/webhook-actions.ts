import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { runQuery } from '../../../src/db/run.ts'
import type { CreatedWebhook } from '../../../src/webhooks/create-webhook.ts'
import type { RotatedSecret } from '../../../src/webhooks/operations/rotate-secret.ts'
import type { WebhookView } from '../../../src/webhooks/webhook-view.ts'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api, type StreamingInit } from './target.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const nobody = 'wh_00000000000000000000'

/** What the actions do to a webhook, as far as it shows without anyone delivering. */
export function webhookActionSuite(api: Api): void {
  const post = (id: string, action: string, body?: unknown) =>
    api.call('POST', `/v1/webhooks/${id}/${action}`, body)

  async function make(input: object = {}): Promise<CreatedWebhook> {
    const body = { stream: freshName(), url: 'https://example.com/hooks', from: 'start', ...input }
    return expectJson(await api.call('POST', '/v1/webhooks', body), 201)
  }

  async function publish(stream: string, count: number): Promise<number[]> {
    const events = Array.from({ length: count }, (_, n) => ({ type: 'order.created', data: n }))
    const answer = await api.call('POST', `/v1/streams/${stream}/events`, events)
    return (await expectJson<{ offsets: number[] }>(answer, 201)).offsets
  }

  const read = async (id: string): Promise<WebhookView> =>
    expectJson(await api.call('GET', `/v1/webhooks/${id}`), 200)

  const change = (id: string, assignment: ReturnType<typeof sql>) =>
    runQuery(api.db, sql`update ${api.db.tables.webhooks} w set ${assignment} where w.id = ${id}`)

  describe('pausing and resuming a webhook', () => {
    it('shows in its state, and can be repeated', async () => {
      const { id } = await make()
      for (let times = 0; times < 2; times++) {
        expect(await expectJson(await post(id, 'pause'), 200)).toMatchObject({ id, state: 'paused' })
      }
      expect((await read(id)).state).toBe('paused')
      for (let times = 0; times < 2; times++) {
        expect(await expectJson(await post(id, 'resume', {}), 200)).toMatchObject({ id, state: 'active' })
      }
    })

    it('takes a request whose body is a stream of nothing, as one without a body arrives in Node', async () => {
      const { id } = await make()
      const init: StreamingInit = {
        method: 'POST',
        headers: { authorization: `Bearer ${api.rootKey}` },
        body: new Blob([]).stream(),
        duplex: 'half',
      }
      const answer = await api.raw(`/v1/webhooks/${id}/pause`, init)
      expect(await expectJson(answer, 200)).toMatchObject({ id, state: 'paused' })
    })

    it('enables a disabled one by hand, which a pause leaves as it is', async () => {
      const { id } = await make()
      await change(
        id,
        sql`state = 'disabled', state_reason = 'answered 410 Gone', failing_since = now(), disable_after = now()`,
      )
      const disabled = { state: 'disabled', stateReason: 'answered 410 Gone' }
      expect(await expectJson(await post(id, 'pause'), 200)).toMatchObject(disabled)
      const enabled = { state: 'active', stateReason: null }
      expect(await expectJson(await post(id, 'resume'), 200)).toMatchObject(enabled)
      const since = await runQuery(
        api.db,
        sql`select w.disable_after from ${api.db.tables.webhooks} w where w.id = ${id}`,
      )
      expect(since).toEqual([{ disable_after: null }])
    })
  })

  describe('rotating the secret of a webhook', () => {
    /** When each secret ends, in hours from now, the newest first; null: it does not. */
    async function endings(id: string): Promise<(number | null)[]> {
      const rows = await runQuery<{ hours: string | null }>(
        api.db,
        sql`select round(extract(epoch from k.expires_at - clock_timestamp()) / 3600)::text as hours
          from ${api.db.tables.webhookSecrets} k where k.webhook_id = ${id} order by k.created_at desc`,
      )
      return rows.map(({ hours }) => (hours === null ? null : Number(hours)))
    }

    it('makes a new one, shown once; the old one signs for 24 hours more', async () => {
      const { id, secret } = await make()
      const rotated = await expectJson<RotatedSecret>(await post(id, 'rotate-secret'), 200)
      expect(Object.keys(rotated)).toEqual(['secret', 'overlapUntil'])
      expect(rotated.secret).toMatch(/^whsec_/)
      expect(rotated.secret).not.toBe(secret)
      expect(Date.parse(rotated.overlapUntil) - Date.now()).toBeGreaterThan(dayMs - hourMs)
      expect(await endings(id)).toEqual([null, 24])
      const shown = await api.call('GET', `/v1/webhooks/${id}`)
      expect(await shown.text()).not.toContain(rotated.secret.slice(6))
    })

    it('takes a secret, and an overlap of 0 to 7 days; a later rotation starts one of its own', async () => {
      const { id } = await make()
      const secret = `whsec_${btoa('a secret that somebody chose')}`
      const first = { secret, overlapMs: 7 * dayMs }
      expect(await expectJson(await post(id, 'rotate-secret', first), 200)).toMatchObject({ secret })
      await expectJson(await post(id, 'rotate-secret', { overlapMs: hourMs }), 200)
      expect(await endings(id)).toEqual([null, 1, 168])
      await expectJson(await post(id, 'rotate-secret', { overlapMs: 0 }), 200)
      expect(await endings(id)).toEqual([null, 0, 1, 168])
    })

    it('keeps the kind: of v1a it also gives the public key', async () => {
      const { id } = await make({ signature: 'v1a' })
      const { secret, publicKey } = await expectJson<RotatedSecret>(await post(id, 'rotate-secret'), 200)
      expect([secret.slice(0, 5), publicKey?.slice(0, 5)]).toEqual(['whsk_', 'whpk_'])
    })

    it.each([
      [{ overlapMs: 7 * dayMs + 1 }, 'overlapMs'],
      [{ overlapMs: -1 }, 'overlapMs'],
      [{ overlapMs: 0.5 }, 'overlapMs'],
      [{ overlapMs: '5' }, 'overlapMs'],
      [{ overlapMs: null }, 'overlapMs'],
      [{ secret: 'whsec_c2hvcnQ=' }, 'secret'],
      [{ secret: `whsk_${btoa('x'.repeat(64))}` }, 'secret'],
      [{ secret: null }, 'secret'],
      [{ overlap: 5 }, 'overlap'],
    ])('refuses %j, naming %s, and rotates nothing', async (body, field) => {
      const { id } = await make()
      const problem = await expectProblem(await post(id, 'rotate-secret', body), 'INVALID_INPUT', field)
      expect(problem.detail).not.toContain('c2hvcnQ')
      expect(await endings(id)).toEqual([null])
    })
  })

  describe('moving a webhook in its stream', () => {
    it('goes to an offset, back and forth', async () => {
      const { id, stream } = await make()
      const offsets = await publish(stream, 3)
      for (const offset of [offsets[2]!, 0, offsets[0]!]) {
        expect(await expectJson(await post(id, 'seek', { offset }), 200)).toEqual({ offset })
        expect((await read(id)).offset).toBe(offset)
      }
    })

    it('goes to a time: before the first event published at or after it', async () => {
      const { id, stream } = await make()
      const [first] = await publish(stream, 1)
      const { events } = await expectJson<{ events: { publishedAt: string }[] }>(
        await api.call('GET', `/v1/streams/${stream}/events`),
        200,
      )
      const later = new Date(Date.parse(events[0]!.publishedAt) + 1).toISOString()
      const [second] = await publish(stream, 1)
      const seek = async (time: string) =>
        (await expectJson<{ offset: number }>(await post(id, 'seek', { time }), 200)).offset
      const start = await seek('2001-01-01T00:00:00Z')
      expect(start).toBeLessThan(first!)
      const between = await seek(later)
      expect(between).toBeGreaterThanOrEqual(first!)
      expect(between).toBeLessThan(second!)
      expect(await seek('2999-01-01T00:00:00+02:00')).toBeGreaterThanOrEqual(second!)
    })

    it('forgets the troubles that lie beyond, which come again, and keeps those before', async () => {
      const { id, stream } = await make()
      const offsets = await publish(stream, 3)
      for (const offset of offsets) await seed(id, { offset, state: 'dead' })
      await expectJson(await post(id, 'seek', { offset: offsets[1] }), 200)
      const { deliveries } = await listed(id, '')
      expect(deliveries.map(({ offset }) => offset)).toEqual(offsets.slice(0, 2))
    })

    it.each([
      [{}, 'INVALID_INPUT', 'offset'],
      [{ offset: 1, time: '2026-01-01T00:00:00Z' }, 'INVALID_INPUT', 'offset'],
      [{ offset: -1 }, 'INVALID_INPUT', 'offset'],
      [{ offset: 1.5 }, 'INVALID_INPUT', 'offset'],
      [{ offset: '1' }, 'INVALID_INPUT', 'offset'],
      [{ offset: 2 ** 52 }, 'OFFSET_AHEAD', 'offset'],
      [{ time: '2026-01-01T00:00:00' }, 'INVALID_INPUT', 'time'],
      [{ time: '2026-02-31T25:00:00Z' }, 'INVALID_INPUT', 'time'],
      [{ time: '0000-01-01T00:00:00Z' }, 'INVALID_INPUT', 'time'],
      [{ time: '9999-12-31T23:59:59-12:00' }, 'INVALID_INPUT', 'time'],
      [{ time: 'yesterday' }, 'INVALID_INPUT', 'time'],
      [{ time: 5 }, 'INVALID_INPUT', 'time'],
      [{ ofset: 1 }, 'INVALID_INPUT', 'ofset'],
    ] as const)('refuses %j with %s, naming %s, and moves nothing', async (body, code, field) => {
      const { id, offset } = await make()
      await expectProblem(await post(id, 'seek', body), code, field)
      expect((await read(id)).offset).toBe(offset)
    })
  })

  interface Seed {
    offset: number
    state: 'retrying' | 'blocked' | 'dead'
    diedHoursAgo?: number
  }

  /** A delivery in trouble, as a worker would have left it. */
  async function seed(id: string, { offset, state, diedHoursAgo = 0 }: Seed): Promise<void> {
    await runQuery(
      api.db,
      sql`insert into ${api.db.tables.deliveries}
          (webhook_id, "offset", unit, state, attempts, due_at, last_status, last_error, last_answer, updated_at)
        values (${id}, ${offset}, 'k', ${state}, 3, case when ${state}::text = 'retrying' then now() + interval '1 hour' end,
          500, 'answered 500', 'oops', now() - ${diedHoursAgo}::integer * interval '1 hour')`,
    )
  }

  interface Line {
    offset: number
    state: string
    attempts: number
    unit: string | null
    dueAt: string | null
  }

  const listed = async (id: string, query: string): Promise<{ deliveries: Line[]; next: number | null }> =>
    expectJson(await api.call('GET', `/v1/webhooks/${id}/deliveries?${query}`), 200)

  async function troubled(...states: Seed['state'][]): Promise<{ id: string; offsets: number[] }> {
    const { id, stream } = await make()
    const offsets = await publish(stream, states.length)
    for (const [at, state] of states.entries()) await seed(id, { offset: offsets[at]!, state })
    return { id, offsets }
  }

  describe('the deliveries of a webhook that are in trouble', () => {
    it('are listed by offset with what was last answered, filtered and paged', async () => {
      const { id, offsets } = await troubled('dead', 'retrying', 'blocked', 'dead', 'dead')
      const page = await listed(id, 'limit=2')
      expect(page.next).toBe(offsets[1])
      expect(page.deliveries[1]).toEqual({
        offset: offsets[1],
        state: 'retrying',
        unit: 'k',
        type: 'order.created',
        attempts: 3,
        dueAt: expect.stringMatching(/Z$/),
        lastStatus: 500,
        lastError: 'answered 500',
        lastAnswer: 'oops',
        updatedAt: expect.stringMatching(/Z$/),
      })
      const dead: number[] = []
      let cursor: number | null = 0
      for (let pages = 0; cursor !== null && pages < 5; pages++) {
        const found = await listed(id, `state=dead&limit=2&cursor=${cursor}`)
        dead.push(...found.deliveries.map(({ offset }) => offset))
        cursor = found.next
      }
      expect(dead).toEqual([offsets[0], offsets[3], offsets[4]])
    })

    it.each([
      ['state=gone', 'state'],
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['cursor=x', 'cursor'],
      ['states=dead', 'states'],
      ['limit=1&limit=2', 'limit'],
    ])('refuse ?%s, naming %s', async (query, field) => {
      const { id } = await make()
      const answer = await api.call('GET', `/v1/webhooks/${id}/deliveries?${query}`)
      await expectProblem(answer, 'INVALID_INPUT', field)
    })

    it('are retried one by one: before their time, or with all their attempts anew', async () => {
      const { id, offsets } = await troubled('dead', 'retrying', 'blocked')
      const retry = (offset: number | string) => post(id, `deliveries/${offset}/retry`)
      for (const offset of offsets.slice(0, 2)) expect((await retry(offset)).status).toBe(204)
      const { deliveries } = await listed(id, 'state=retrying')
      const expected = [
        { offset: offsets[0], attempts: 0, unit: null },
        { offset: offsets[1], attempts: 3, unit: 'k' },
      ]
      expect(deliveries).toMatchObject(expected)
      for (const { dueAt } of deliveries) expect(Date.parse(dueAt!)).toBeLessThan(Date.now() + hourMs / 2)
      await expectProblem(await retry(offsets[2]!), 'CONFLICT')
      await expectProblem(await retry(2 ** 40), 'NOT_FOUND')
      for (const wrong of ['x', '1.5', '-1', '1e3', '99999999999999999999'])
        await expectProblem(await retry(wrong), 'INVALID_INPUT', 'offset')
    })

    it('are redriven when dead, all of them or those that died since', async () => {
      const { id, stream } = await make()
      const offsets = await publish(stream, 3)
      for (const [at, offset] of offsets.entries())
        await seed(id, { offset, state: 'dead', diedHoursAgo: at * 10 })
      const since = new Date(Date.now() - 5 * hourMs).toISOString()
      expect(await expectJson(await post(id, 'redrive', { since }), 200)).toEqual({ redriven: 1 })
      expect((await read(id)).dead).toBe(2)
      expect(await expectJson(await post(id, 'redrive'), 200)).toEqual({ redriven: 2 })
      expect(await expectJson(await post(id, 'redrive'), 200)).toEqual({ redriven: 0 })
      expect(await read(id)).toMatchObject({ dead: 0, retrying: 3 })
    })

    it.each([
      [{ since: '2026-01-01' }, 'since'],
      [{ since: 0 }, 'since'],
      [{ from: '2026-01-01T00:00:00Z' }, 'from'],
    ])('are not redriven with %j: it names %s', async (body, field) => {
      const { id } = await troubled('dead')
      await expectProblem(await post(id, 'redrive', body), 'INVALID_INPUT', field)
      expect((await read(id)).dead).toBe(1)
    })
  })

  describe('the attempt log of a webhook', () => {
    async function logged(): Promise<string> {
      const { id } = await make()
      await runQuery(
        api.db,
        sql`insert into ${api.db.tables.attempts}
            (webhook_id, "offset", attempt, at, duration_ms, outcome, status, error, answer)
          select ${id}, 100 + n / 2, 1 + n % 2, now(), n, (array['retry', 'dead'])[1 + n % 2], 500, 'answered 500', 'no'
          from generate_series(0, 5) n`,
      )
      return id
    }
    const attempts = async (id: string, query: string) =>
      expectJson<{
        attempts: { id: number; offset: number; attempt: number; outcome: string }[]
        next: number | null
      }>(await api.call('GET', `/v1/webhooks/${id}/attempts?${query}`), 200)

    it('is listed newest first, filtered and paged', async () => {
      const id = await logged()
      const all: string[] = []
      let cursor: number | null | undefined
      for (let pages = 0; cursor !== null && pages < 9; pages++) {
        const page = await attempts(id, `limit=4${cursor === undefined ? '' : `&cursor=${cursor}`}`)
        all.push(...page.attempts.map(({ offset, attempt }) => `${offset}/${attempt}`))
        cursor = page.next
      }
      expect(all).toEqual(['102/2', '102/1', '101/2', '101/1', '100/2', '100/1'])
      expect((await attempts(id, 'outcome=dead')).attempts.map(({ offset }) => offset)).toEqual([
        102, 101, 100,
      ])
      expect(await attempts(id, 'offset=101&outcome=retry')).toEqual({
        attempts: [
          {
            id: expect.any(Number),
            at: expect.stringMatching(/Z$/),
            ...{ offset: 101, attempt: 1, durationMs: 2, outcome: 'retry' },
            ...{ status: 500, error: 'answered 500', answer: 'no' },
          },
        ],
        next: null,
      })
    })

    it.each([
      ['outcome=ok', 'outcome'],
      ['offset=x', 'offset'],
      ['limit=0', 'limit'],
      ['cursor=1.5', 'cursor'],
      ['state=dead', 'state'],
    ])('refuses ?%s, naming %s', async (query, field) => {
      const { id } = await make()
      const answer = await api.call('GET', `/v1/webhooks/${id}/attempts?${query}`)
      await expectProblem(answer, 'INVALID_INPUT', field)
    })
  })

  describe('the actions of a webhook', () => {
    const bodies: Record<string, object | undefined> = { seek: { offset: 0 } }
    it.each(['pause', 'resume', 'rotate-secret', 'seek', 'redrive', 'deliveries/1/retry'])(
      '%s: knows no other webhooks, no query, and no body but its own',
      async (action) => {
        for (const id of [nobody, 'wh_0', "'"]) {
          await expectProblem(await post(id, action, bodies[action]), 'NOT_FOUND')
        }
        const { id } = await make()
        await expectProblem(await post(id, `${action}?force=1`, bodies[action]), 'INVALID_INPUT', 'force')
        expect((await api.call('GET', `/v1/webhooks/${id}/${action}`)).status).toBe(405)
      },
    )

    it.each(['pause', 'resume', 'test'])(
      '%s: refuses a body that says something, naming it',
      async (action) => {
        const { id } = await make()
        await expectProblem(await post(id, action, { now: true }), 'INVALID_INPUT', 'now')
        await expectProblem(await post(id, action, '[]'), 'INVALID_INPUT', 'body')
        await expectProblem(await post(id, action, '{'), 'INVALID_JSON', 'body')
      },
    )

    it('need the scope to manage', async () => {
      const { id } = await make()
      const answer = await api.raw(`/v1/webhooks/${id}/pause`, { method: 'POST' })
      await expectProblem(answer, 'UNAUTHORIZED')
      expect((await read(id)).state).toBe('active')
    })
  })
}
