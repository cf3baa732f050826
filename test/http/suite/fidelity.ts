import { readFileSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { runQuery } from '../../../src/db/run.ts'
import { expectJson, expectProblem, storedEvents, streamExists } from './answers.ts'
import { freshName, type Api } from './target.ts'

interface PayloadCase {
  json: string
  why: string
  refused?: boolean
}

const vectors = JSON.parse(
  readFileSync(new URL('../../vectors/payload-fidelity.json', import.meta.url), 'utf8'),
) as { cases: PayloadCase[] }
const kept = vectors.cases.filter((payload) => payload.refused !== true)
const refused = vectors.cases.filter((payload) => payload.refused === true)

const mebibyte = 1_048_576

/** S9: the data comes out as it went in, up to the limit; what is over it, or no JSON, stores nothing. */
export function fidelitySuite(api: Api): void {
  describe('S9: the data of an event', () => {
    it.each(kept)('is stored and read byte for byte: $why', async ({ json }) => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      await expectJson(await api.call('POST', path, `{ "data" :${json}, "type":"a"}`), 201)
      await expectJson(await api.call('POST', path, `[{"type":"a","data":${json} }]`), 201)
      await expectJson(await api.call('POST', path, `{"type":"a","data":${json}}\n`, ndjson), 201)
      const data = json.trim()
      expect(await dataOf(api, stream)).toEqual([data, data, data])
      const text = await (await api.call('GET', path)).text()
      expect(text.split(`,"data":${data},"headers":null,`)).toHaveLength(4)
      expect(() => JSON.parse(text)).not.toThrow()
    })

    it.each(refused)('is refused, and nothing stored: $why', async ({ json }) => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const event = `{"type":"a","data":${json}}`
      for (const [body, headers] of [
        [event, {}],
        [`[{"type":"a","data":1},${event}]`, {}],
        [`{"type":"a","data":1}\n${event}`, ndjson],
      ] as const) {
        const answer = await api.call('POST', path, body, headers)
        const { code } = (await answer.clone().json()) as { code: 'INVALID_JSON' | 'JSON_TOO_DEEP' }
        expect(['INVALID_JSON', 'JSON_TOO_DEEP']).toContain(code)
        await expectProblem(answer, code)
      }
      expect(await streamExists(api, stream)).toBe(false)
    })

    it('may nest 512 levels deep, alone or in a list, and no deeper', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const nested = (levels: number) => `{"type":"a","data":${'['.repeat(levels)}${']'.repeat(levels)}}`
      await expectJson(await api.call('POST', path, nested(512)), 201)
      await expectJson(await api.call('POST', path, `[${nested(512)}]`), 201)
      await expectJson(await api.call('POST', path, nested(512), ndjson), 201)
      await expectProblem(await api.call('POST', path, nested(513)), 'JSON_TOO_DEEP', 'data')
      expect(await storedEvents(api, stream)).toBe(3)
    })
  })

  describe('the limit on the data of an event', () => {
    it.each([8 * 1024, 100 * 1024, mebibyte])('lets %i bytes pass', async (size) => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const data = jsonText(size)
      await expectJson(await api.call('POST', path, `{"type":"a","data":${data}}`), 201)
      const text = await (await api.call('GET', path)).text()
      expect(text.includes(`"data":${data},"headers"`)).toBe(true)
    })

    it('lets 1 MiB of two-byte characters pass: bytes count, not characters', async () => {
      const path = `/v1/streams/${freshName()}/events`
      const data = `"${'é'.repeat((mebibyte - 2) / 2)}"`
      await expectJson(await api.call('POST', path, `{"type":"a","data":${data}}`), 201)
      const over = `"é${data.slice(1)}`
      await expectProblem(
        await api.call('POST', path, `{"type":"a","data":${over}}`),
        'BODY_TOO_LARGE',
        'data',
      )
    })

    it('refuses 1 MiB and a byte with 413, and stores nothing', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const event = `{"type":"a","data":${jsonText(mebibyte + 1)}}`
      await expectProblem(await api.call('POST', path, event), 'BODY_TOO_LARGE', 'data')
      const list = `[{"type":"a","data":1},${event}]`
      await expectProblem(await api.call('POST', path, list), 'BODY_TOO_LARGE', '[1].data')
      expect(await streamExists(api, stream)).toBe(false)
    })

    it('stops reading a body that is over the limit as a whole, announced or not', async () => {
      const stream = freshName()
      const path = `/v1/streams/${stream}/events`
      const whole = `[${Array.from({ length: 12 }, () => `{"type":"a","data":${jsonText(100 * 1024)}}`).join()}]`
      await expectProblem(await api.call('POST', path, whole), 'BODY_TOO_LARGE', 'body')
      // More than is let through and thrown away, and then silence: it has to be refused though its end never comes.
      // Whoever still writes when the answer comes may lose it in the reset of the connection.
      const chunk = new TextEncoder().encode(' '.repeat(64 * 1024))
      let left = 5.5 * mebibyte
      const endless = new ReadableStream<Uint8Array>({
        async pull(controller) {
          // a stream that is never short of data would leave this process no time to hear the answer
          await new Promise(setImmediate)
          if (left <= 0) return new Promise(() => {})
          left -= chunk.byteLength
          controller.enqueue(chunk)
        },
      })
      const init = {
        method: 'POST',
        body: endless,
        duplex: 'half',
        headers: { authorization: `Bearer ${api.rootKey}`, 'content-type': 'application/json' },
      }
      await expectProblem(await api.raw(path, init), 'BODY_TOO_LARGE', 'body')
      expect(await streamExists(api, stream)).toBe(false)
    })
  })
}

const ndjson = { 'content-type': 'application/x-ndjson' }

/** A JSON string of so many bytes, quotes included. */
function jsonText(bytes: number): string {
  return `"${'x'.repeat(bytes - 2)}"`
}

async function dataOf(api: Api, stream: string): Promise<string[]> {
  const { events, streams } = api.db.tables
  const rows = await runQuery<{ data: string }>(
    api.db,
    sql`select e.data::text as data from ${events} e join ${streams} s on s.id = e.stream_id
      where s.name = ${stream} order by e."offset"`,
  )
  return rows.map((row) => row.data)
}
