import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface Page {
  events: { offset: number }[]
  next: number
}

async function streamOf(
  api: Api,
  count: number,
): Promise<{ stream: string; base: string; offsets: number[] }> {
  const stream = freshName()
  const base = `/v1/streams/${stream}`
  const events = Array.from({ length: count }, (_, data) => ({ type: 't', data }))
  const answer = await api.call('POST', `${base}/events`, events)
  return { stream, base, offsets: (await expectJson<{ offsets: number[] }>(answer, 201)).offsets }
}

/** Streams themselves: the list, one of them, what it keeps, trimming, and waiting for more. */
export function streamSuite(api: Api): void {
  describe('a stream', () => {
    it('shows its ends, its retention and its consumers with their lag', async () => {
      const { stream, base, offsets } = await streamOf(api, 3)
      await api.call('PUT', `${base}/consumers/c`, { offset: offsets[0] })
      expect(await expectJson(await api.call('GET', base), 200)).toMatchObject({
        ...{ name: stream, first: offsets[0], last: offsets[2], heldBy: [] },
        retention: { ageMs: null, count: null, keepUnread: false },
        consumers: [{ name: 'c', kind: 'consumer', offset: offsets[0], lag: 2 }],
      })
      await expectProblem(await api.call('GET', `/v1/streams/${freshName()}`), 'NOT_FOUND')
    })

    it('is on the list, which comes in pages by name', async () => {
      const prefix = freshName('list')
      for (const name of ['c', 'a', 'b'])
        await api.call('POST', `/v1/streams/${prefix}.${name}/events`, { type: 't', data: 1 })
      const list = async (query: string) =>
        expectJson<{ streams: { name: string }[]; next: string | null }>(
          await api.call('GET', `/v1/streams?prefix=${prefix}.&limit=2${query}`),
          200,
        )
      const first = await list('')
      expect(first.streams.map(({ name }) => name)).toEqual([`${prefix}.a`, `${prefix}.b`])
      const rest = await list(`&cursor=${first.next}`)
      expect(rest).toMatchObject({ streams: [{ name: `${prefix}.c` }], next: null })
      await expectProblem(await api.call('GET', '/v1/streams?limit=0'), 'INVALID_INPUT', 'limit')
    })

    it('takes a retention, a part at a time, and refuses what is none', async () => {
      const base = `/v1/streams/${freshName()}`
      const patch = (retention: object) => api.call('PATCH', base, { retention })
      await expectJson(await patch({ ageMs: 60_000, keepUnread: true }), 200)
      expect(await expectJson(await patch({ count: 5, ageMs: null }), 200)).toEqual({
        retention: { ageMs: null, count: 5, keepUnread: true },
      })
      await expectProblem(await patch({ ageMs: 10 }), 'INVALID_INPUT', 'retention.ageMs')
      await expectProblem(await patch({ age: 10 }), 'INVALID_INPUT')
      const reserved = api.call('PATCH', '/v1/streams/millrace.x', { retention: {} })
      await expectProblem(await reserved, 'INVALID_NAME', 'stream')
    })

    it('S4: is trimmed up to an offset; a negative one deletes nothing, none is refused', async () => {
      const { base, offsets } = await streamOf(api, 4)
      const trim = async (query: string) =>
        expectJson(await api.call('DELETE', `${base}/events?through=${query}`), 200)
      expect(await trim('-1')).toEqual({ deleted: 0 })
      expect(await trim(String(offsets[1]))).toEqual({ deleted: 2 })
      const { events } = await expectJson<Page>(await api.call('GET', `${base}/events`), 200)
      expect(events.map(({ offset }) => offset)).toEqual(offsets.slice(2))
      await expectProblem(await api.call('DELETE', `${base}/events`), 'INVALID_INPUT', 'through')
    })

    it('is waited for until there is something, or the time is up', async () => {
      const { base, offsets } = await streamOf(api, 1)
      const waiting = api.call('GET', `${base}/events?after=${offsets[0]}&wait=20`)
      const { offset } = await expectJson<{ offset: number }>(
        await api.call('POST', `${base}/events`, { type: 't', data: 'new' }),
        201,
      )
      expect(await expectJson<Page>(await waiting, 200)).toMatchObject({ events: [{ offset }], next: offset })
      const empty = await api.call('GET', `${base}/events?after=${offset}&wait=1`)
      expect(await expectJson<Page>(empty, 200)).toMatchObject({ events: [], next: offset })
      const nothing = await api.call('GET', `${base}/events?limit=-1&wait=30`)
      expect(await expectJson<Page>(nothing, 200)).toMatchObject({ events: [] })
      await expectProblem(await api.call('GET', `${base}/events?wait=31`), 'INVALID_INPUT', 'wait')
      await expectProblem(
        await api.call('GET', `${base}/events?after=900000000000&wait=5`),
        'OFFSET_AHEAD',
        'after',
      )
    })
  })
}
