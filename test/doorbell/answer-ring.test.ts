import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createDoorbell } from '../../src/doorbell/answer-ring.ts'
import { createCoalescer } from '../../src/doorbell/coalesce.ts'
import { createRememberedRings } from '../../src/doorbell/remembered-rings.ts'
import { doorbellUrl, ringDoorbell } from '../../src/doorbell/ring-doorbell.ts'
import { createRingSigner } from '../../src/doorbell/ring-signature.ts'
import type { Ring } from '../../src/doorbell/ring.ts'
import { createDrivenClock } from '../support/clock.ts'

const secret = 'a-secret-of-both-ends-0123456789'

function setUp() {
  const clock = createDrivenClock()
  const heard: Ring['streamIds'][] = []
  const bell = createDoorbell({
    secret,
    clock,
    mode: () => 'sleeping',
    onRing: (streamIds) => void heard.push(streamIds),
  })
  const now = (): number => Math.floor(clock.now() / 1000)
  /** A ring as it is written in the docs, signed by another implementation than ours. */
  const request = ({
    id = 'r1',
    timestamp = now(),
    body = '',
    key = secret,
    tamper = (text: string) => text,
  } = {}) => {
    const mac = createHmac('sha256', key).update(`millrace-ring.v1.${id}.${timestamp}.${body}`).digest('hex')
    const headers = {
      'millrace-ring-id': id,
      'millrace-ring-timestamp': String(timestamp),
      'millrace-ring-signature': tamper(`v1=${mac}`),
    }
    return new Request('http://forwarder/doorbell', { method: 'POST', headers, body })
  }
  const status = async (given?: Parameters<typeof request>[0]): Promise<number> =>
    (await bell.answer(request(given))).status
  return { clock, heard, bell, request, status, now }
}

describe('a doorbell', () => {
  it('rings for who signs with the secret, and says how the forwarder was', async () => {
    const { bell, request, heard } = setUp()
    const answer = await bell.answer(request({ body: '{"streamIds":[4,7]}' }))
    expect([answer.status, await answer.json()]).toEqual([202, { mode: 'sleeping' }])
    expect(heard).toEqual([[4, 7]])
  })

  it('rings for everything without a body', async () => {
    const { status, heard } = setUp()
    expect(await status()).toBe(202)
    expect(heard).toEqual(['all'])
  })

  it('refuses, without a reason, what is not signed with its secret over what was sent', async () => {
    const { bell, request, status, heard, now } = setUp()
    expect(await status({ key: `${secret}x` })).toBe(401)
    expect(await status({ tamper: (text) => text.replace(/.$/, (last) => (last === '0' ? '1' : '0')) })).toBe(
      401,
    )
    expect(await status({ tamper: (text) => text.slice(0, -2) })).toBe(401)
    expect(await status({ tamper: (text) => text.toUpperCase() })).toBe(401)
    expect(await status({ tamper: () => '' })).toBe(401)
    const signed = request({ body: '{"streamIds":[4]}' })
    const moved = new Request(signed.url, {
      method: 'POST',
      headers: signed.headers,
      body: '{"streamIds":[5]}',
    })
    expect((await bell.answer(moved)).status).toBe(401)
    for (const [name, value] of [
      ['millrace-ring-id', 'another'],
      ['millrace-ring-id', ''],
      ['millrace-ring-timestamp', String(now() + 1)],
      ['millrace-ring-timestamp', `${now()}x`],
    ] as const) {
      const changed = request()
      changed.headers.set(name, value)
      expect([name, value, (await bell.answer(changed)).status]).toEqual([name, value, 401])
    }
    expect(await (await bell.answer(request({ key: 'x' }))).json()).toEqual({ error: 'not authorized' })
    expect(heard).toEqual([])
  })

  it('refuses a ring that is older, or younger, than five minutes', async () => {
    const { status, now } = setUp()
    expect(await status({ id: 'a', timestamp: now() - 301 })).toBe(401)
    expect(await status({ id: 'b', timestamp: now() + 301 })).toBe(401)
    expect(await status({ id: 'c', timestamp: now() - 300 })).toBe(202)
    expect(await status({ id: 'd', timestamp: now() + 300 })).toBe(202)
  })

  it('takes each ring once, however long it is kept and sent again', async () => {
    const { status, now, clock, heard } = setUp()
    const timestamp = now() + 300
    expect(await status({ timestamp })).toBe(202)
    for (let sent = 0; sent < 20; sent++) {
      await clock.advance(31_000)
      expect([401, 409]).toContain(await status({ timestamp }))
    }
    expect(heard).toHaveLength(1)
  })

  it('refuses a body that is no ring, or too large to be one', async () => {
    const { bell, status } = setUp()
    const bodies = ['{', 'null', '{}', '[1]', '{"streamIds":[]}', '{"streamIds":["1"]}', '{"streamIds":[0]}']
    for (const [index, body] of bodies.entries())
      expect([body, await status({ id: `b${index}`, body })]).toEqual([body, 400])
    expect(await status({ id: 'long', body: ' '.repeat(4_097) })).toBe(413)
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1_000)) })
    const init = { method: 'POST', body: endless, duplex: 'half' } as RequestInit
    expect((await bell.answer(new Request('http://forwarder/doorbell', init))).status).toBe(413)
  })
})

describe('the memory of a doorbell', () => {
  it('is bounded, forgets the older half, and takes none of those again', () => {
    const rings = createRememberedRings({ toleranceS: 300, most: 100 })
    for (let n = 0; n < 1_000; n++) {
      expect(rings.take(`r${n}`, 1_000 + n, 1_000 + n)).toBe(true)
      expect(rings.size).toBeLessThanOrEqual(100)
    }
    for (let n = 0; n < 1_000; n++) expect([n, rings.take(`r${n}`, 1_000 + n, 2_000)]).toEqual([n, false])
  })

  it('gives room back that is too old to be taken anyway', () => {
    const rings = createRememberedRings({ toleranceS: 10, most: 3 })
    for (const id of ['a', 'b', 'c']) expect(rings.take(id, 100, 100)).toBe(true)
    expect(rings.take('d', 200, 200)).toBe(true)
    expect(rings.size).toBe(1)
  })
})

describe('many rings at once', () => {
  it('are handed on ten times a second, none lost', async () => {
    const clock = createDrivenClock()
    const heard: Ring['streamIds'][] = []
    const coalescer = createCoalescer(clock, 100, (streamIds) => void heard.push(streamIds))
    for (let n = 1; n <= 1_000; n++) coalescer.add({ streamIds: [n % 50 || 50] })
    expect(heard).toEqual([[1]])
    await clock.advance(100)
    expect(heard).toHaveLength(2)
    expect(heard[1]).toHaveLength(50)
    coalescer.add({ streamIds: [3] })
    coalescer.add({ streamIds: 'all' })
    expect(heard).toHaveLength(2)
    await clock.advance(100)
    expect(heard[2]).toBe('all')
    await clock.advance(100)
    expect(clock.pending()).toBe(0)
    coalescer.add({ streamIds: [9] })
    expect(heard[3]).toEqual([9])
    coalescer.close()
    expect(clock.pending()).toBe(0)
  })
})

describe('who rings', () => {
  it('is understood by the doorbell, each time anew', async () => {
    const { bell, clock, heard } = setUp()
    const fetch: typeof globalThis.fetch = (url, init) => {
      expect(url).toBe('https://forwarder.example/doorbell')
      expect(init?.redirect).toBe('manual')
      return bell.answer(new Request(url as string, init))
    }
    const ring = { url: 'https://forwarder.example', secret, ports: { clock, fetch } }
    for (const streamIds of [[5], 'all', Array.from({ length: 200 }, (_, n) => n + 1)] as const) {
      expect(await ringDoorbell({ ...ring, ring: { streamIds } })).toEqual({ status: 202, mode: 'sleeping' })
      await clock.advance(1_000)
    }
    expect(heard).toEqual([[5], 'all', 'all'])
    expect(clock.pending()).toBe(0)
  })

  it('gives up after three seconds without an answer, and when told to', async () => {
    const clock = createDrivenClock()
    const fetch: typeof globalThis.fetch = (_url, init) =>
      new Promise((_resolve, reject) => {
        const abort = (): void => reject(new Error('aborted'))
        init!.signal!.addEventListener('abort', abort)
        if (init!.signal!.aborted) abort()
      })
    const given = {
      url: 'http://forwarder',
      secret,
      ports: { clock, fetch },
      ring: { streamIds: 'all' },
    } as const
    const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code
    const silent = ringDoorbell(given).catch(codeOf)
    await clock.waitForTimers(1)
    await clock.advance(3_000)
    expect(await silent).toBe('SERVER_UNREACHABLE')
    const stop = new AbortController()
    const stopped = ringDoorbell({ ...given, signal: stop.signal }).catch(codeOf)
    stop.abort()
    expect(await stopped).toBe('ABORTED')
    expect(clock.pending()).toBe(0)
  })

  it('keeps the path of an address that has one', () => {
    expect(doorbellUrl('http://a:1')).toBe('http://a:1/doorbell')
    expect(doorbellUrl('https://a/wake/up')).toBe('https://a/wake/up')
  })

  it('signs as another implementation does', async () => {
    const ring = { id: 'x', timestamp: 1_700_000_000, body: '{"streamIds":[1]}' }
    const mac = createHmac('sha256', secret)
      .update(`millrace-ring.v1.x.1700000000.${ring.body}`)
      .digest('hex')
    expect(await createRingSigner(secret).sign(ring)).toBe(`v1=${mac}`)
  })
})
