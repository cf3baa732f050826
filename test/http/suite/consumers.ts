import { describe, expect, it } from 'vitest'
import { expectJson, expectProblem } from './answers.ts'
import { freshName, type Api } from './target.ts'

async function streamOf(api: Api, count: number): Promise<{ base: string; offsets: number[] }> {
  const base = `/v1/streams/${freshName()}`
  const events = Array.from({ length: count }, (_, i) => ({ type: i % 2 ? 'odd' : 'even', data: i }))
  const answer = await api.call('POST', `${base}/events`, events)
  return { base, offsets: (await expectJson<{ offsets: number[] }>(answer, 201)).offsets }
}

async function offsetAfter(response: Promise<Response>): Promise<number> {
  return (await expectJson<{ offset: number }>(await response, 200)).offset
}

/** Saved offsets: forward only by saving, anywhere by seeking. */
export function consumerSuite(api: Api): void {
  describe('a consumer', () => {
    it('has the offset 0 before it saves, also in a stream that does not exist', async () => {
      expect(await offsetAfter(api.call('GET', `/v1/streams/${freshName()}/consumers/mail`))).toBe(0)
    })

    it('S3: never goes back by saving, whatever the order, and says where it stands', async () => {
      const { base, offsets } = await streamOf(api, 10)
      const path = `${base}/consumers/mail`
      const high = offsets[9] as number
      const answers = await Promise.all(offsets.map((offset) => api.call('PUT', path, { offset })))
      for (const answer of answers) expect(answer.status).toBe(200)
      expect(await offsetAfter(api.call('GET', path))).toBe(high)
      expect(await offsetAfter(api.call('PUT', path, { offset: offsets[0] }))).toBe(high)
      expect(await offsetAfter(api.call('PUT', path, { offset: 0 }))).toBe(high)
      expect(await offsetAfter(api.call('GET', path))).toBe(high)
    })

    it('S3: goes back by seeking only, and on from there', async () => {
      const { base, offsets } = await streamOf(api, 3)
      const path = `${base}/consumers/mail`
      await api.call('PUT', path, { offset: offsets[2] })
      expect(await offsetAfter(api.call('POST', `${path}/seek`, { offset: offsets[0] }))).toBe(offsets[0])
      expect(await offsetAfter(api.call('GET', path))).toBe(offsets[0])
      expect(await offsetAfter(api.call('PUT', path, { offset: offsets[1] }))).toBe(offsets[1])
    })

    it('reads from its saved offset, and reading saves nothing', async () => {
      const { base, offsets } = await streamOf(api, 6)
      const path = `${base}/consumers/mail`
      await api.call('PUT', path, { offset: offsets[1] })
      const read = async (query: string) => {
        const answer = await api.call('GET', `${path}/events${query}`)
        const { events } = await expectJson<{ events: { offset: number }[] }>(answer, 200)
        return events.map((event) => event.offset)
      }
      expect(await read('')).toEqual(offsets.slice(2))
      expect(await read('?limit=2')).toEqual(offsets.slice(2, 4))
      expect(await read('?type=odd')).toEqual([offsets[3], offsets[5]])
      expect(await read('')).toEqual(offsets.slice(2))
      expect(await offsetAfter(api.call('GET', path))).toBe(offsets[1])
    })

    it('may have any name without control characters, slashes and all, and names do not mix', async () => {
      const { base, offsets } = await streamOf(api, 2)
      const names = ['a/b', 'a%2Fb', 'ü ☃', 'millrace.x', '%']
      for (const name of names) {
        const path = `${base}/consumers/${encodeURIComponent(name)}`
        expect(await offsetAfter(api.call('GET', path))).toBe(0)
        await api.call('PUT', path, { offset: offsets[0] })
        expect(await offsetAfter(api.call('GET', path))).toBe(offsets[0])
      }
      await expectProblem(await api.call('GET', `${base}/consumers/a%00`), 'INVALID_NAME', 'consumer')
      await expectProblem(await api.call('GET', `${base}/consumers/%FF`), 'BAD_REQUEST')
      const long = await api.call('GET', `${base}/consumers/${'c'.repeat(129)}`)
      await expectProblem(long, 'INVALID_NAME', 'consumer')
    })

    it.each([
      ['{}', 'INVALID_INPUT', 'offset'],
      ['{"offset":-1}', 'INVALID_INPUT', 'offset'],
      ['{"offset":1.5}', 'INVALID_INPUT', 'offset'],
      ['{"offset":"1"}', 'INVALID_INPUT', 'offset'],
      ['{"offset":null}', 'INVALID_INPUT', 'offset'],
      ['{"offset":1e400}', 'INVALID_INPUT', 'offset'],
      ['{"offset":12345678901234567890}', 'INVALID_INPUT', 'offset'],
      ['{"offset":900000000000}', 'OFFSET_AHEAD', 'offset'],
      ['{"offset":0,"offst":1}', 'INVALID_INPUT', 'offst'],
      ['{"offset":0,"offset":1}', 'INVALID_INPUT', 'body'],
      ['[]', 'INVALID_INPUT', 'body'],
      ['', 'INVALID_JSON', 'body'],
    ] as const)('does not save or seek to %s', async (body, code, field) => {
      const { base } = await streamOf(api, 1)
      const path = `${base}/consumers/mail`
      await expectProblem(await api.call('PUT', path, body), code, field)
      await expectProblem(await api.call('POST', `${path}/seek`, body), code, field)
      expect(await offsetAfter(api.call('GET', path))).toBe(0)
    })

    it('saves nothing in a stream that does not exist', async () => {
      const path = `/v1/streams/${freshName()}/consumers/mail`
      await expectProblem(await api.call('PUT', path, { offset: 0 }), 'NOT_FOUND')
      await expectProblem(await api.call('POST', `${path}/seek`, { offset: 0 }), 'NOT_FOUND')
    })
  })
}
