import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Page {
  events: { offset: number; type: string; publishedAt: string }[]
  next: number
  horizon: number
}

/** Publishes one event per type and returns the address and the offsets. */
async function publishTypes(api: Api, types: string[]): Promise<{ path: string; offsets: number[] }> {
  const path = `/v1/streams/${freshName()}/events`
  const events = types.map((type) => ({ type, data: { type } }))
  const { offsets } = await expectJson<{ offsets: number[] }>(await api.call('POST', path, events), 201)
  return { path, offsets }
}

async function read(api: Api, path: string): Promise<Page> {
  return expectJson<Page>(await api.call('GET', path), 200)
}

/** Pages, filters, limits and the parameters at fault. */
export function readSuite(api: Api): void {
  describe('reading', () => {
    it('S1: follows `next` through the pages and sees every event once, in order', async () => {
      const { path, offsets } = await publishTypes(
        api,
        Array.from({ length: 25 }, (_, i) => `t${i}`),
      )
      const seen: number[] = []
      let after = 0
      for (let page = 0; page < 4; page++) {
        const { events, next, horizon } = await read(api, `${path}?after=${after}&limit=10`)
        seen.push(...events.map((event) => event.offset))
        expect(next).toBeLessThanOrEqual(horizon)
        after = next
      }
      expect(seen).toEqual(offsets)
      expect(await read(api, `${path}?after=${after}`)).toMatchObject({ events: [], next: after })
    })

    it('tells an event as it was published, with the time in milliseconds', async () => {
      const { path, offsets } = await publishTypes(api, ['order.created'])
      const { events } = await read(api, path)
      expect(events).toEqual([
        {
          offset: offsets[0],
          type: 'order.created',
          key: null,
          data: { type: 'order.created' },
          headers: null,
          publishedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        },
      ])
      expect(Math.abs(Date.parse(events[0]?.publishedAt ?? '') - Date.now())).toBeLessThan(60_000)
    })

    it('filters by type: repeated, comma separated, with * at the end', async () => {
      const { path } = await publishTypes(api, ['order.created', 'order.paid', 'user.created', 'order_x'])
      const types = async (query: string) =>
        (await read(api, `${path}?${query}`)).events.map(({ type }) => type)
      expect(await types('type=order.*')).toEqual(['order.created', 'order.paid'])
      expect(await types('type=order.paid,user.created')).toEqual(['order.paid', 'user.created'])
      expect(await types('type=order_x&type=user.*')).toEqual(['user.created', 'order_x'])
      expect(await types('type=nothing')).toEqual([])
      expect(await types('type=%2A')).toHaveLength(4)
    })

    it('reads a stream that does not exist as empty', async () => {
      expect(await read(api, `/v1/streams/${freshName()}/events`)).toEqual({
        events: [],
        next: 0,
        horizon: 0,
      })
    })

    it('S5: reads nothing at a limit of 0 and less', async () => {
      const { path } = await publishTypes(api, ['a', 'b'])
      for (const limit of ['0', '-1', '-0']) {
        expect(await read(api, `${path}?limit=${limit}&after=7`)).toEqual({
          events: [],
          next: 7,
          horizon: null,
        })
      }
    })

    it('gives at most 1000 events, whatever was asked for', async () => {
      const { path } = await publishTypes(
        api,
        Array.from({ length: 1001 }, () => 'a'),
      )
      expect((await read(api, `${path}?limit=5000`)).events).toHaveLength(1000)
    })

    it('refuses an offset beyond all that was ever numbered', async () => {
      const { path } = await publishTypes(api, ['a'])
      await expectProblem(await api.call('GET', `${path}?after=900000000000`), 'OFFSET_AHEAD', 'after')
    })

    it.each([
      ['after=-1', 'after'],
      ['after=1.5', 'after'],
      ['after=1e3', 'after'],
      ['after=', 'after'],
      ['after=x', 'after'],
      ['after=9007199254740992', 'after'],
      ['after=1&after=2', 'after'],
      ['limit=ten', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=1&limit=1', 'limit'],
      ['type=', 'type'],
      ['type=a,,b', 'type'],
      ['type=a%00', 'type'],
      ['type=a*b', 'types'],
      ['afer=5', 'afer'],
    ])('refuses ?%s, naming %s', async (query, field) => {
      const answer = await api.call('GET', `/v1/streams/${freshName()}/events?${query}`)
      await expectProblem(answer, 'INVALID_INPUT', field)
    })

    it('refuses names, and paths that are not percent-encoded UTF-8', async () => {
      await expectProblem(await api.call('GET', '/v1/streams/a%20b/events'), 'INVALID_NAME', 'stream')
      await expectProblem(await api.call('GET', '/v1/streams/a%FF/events'), 'BAD_REQUEST')
    })
  })
}
