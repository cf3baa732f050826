import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSealer } from '../../src/webhooks/seal.ts'
import { createSigner } from '../../src/webhooks/sign.ts'
import { verifyWebhook } from '../../src/webhooks/verify.ts'
import { createGate, startReceiver, type Receiver } from '../support/receiver.ts'
import vectors from '../vectors/webhook-signatures.json' with { type: 'json' }
import type { Calls } from './support/webhooks-in-workerd.ts'
import { startWorkerd, type Workerd } from './support/workerd.ts'

const { v1, v1a, refusedHeaders } = vectors
const example = v1.cases[0]!
let workerd: Workerd
let receiver: Receiver

beforeAll(async () => {
  workerd = await startWorkerd({ entry: 'test/runtime/support/webhooks-in-workerd.ts' })
  receiver = await startReceiver()
})
afterAll(async () => {
  await workerd.close()
  await receiver.close()
})

type Answer<Name extends keyof Calls> = Awaited<ReturnType<Calls[Name]>>

async function outcome<Name extends keyof Calls>(name: Name, input: Parameters<Calls[Name]>[0]) {
  const body = JSON.stringify({ name, input })
  const response = await workerd.fetch(new Request('http://worker/', { method: 'POST', body }))
  return (await response.json()) as { answer?: Answer<Name>; error?: { code: string } }
}

async function inWorkerd<Name extends keyof Calls>(
  name: Name,
  input: Parameters<Calls[Name]>[0],
): Promise<Answer<Name>> {
  const { answer, error } = await outcome(name, input)
  if (answer === undefined) throw new Error(JSON.stringify(error))
  return answer
}

describe('in workerd, signing', () => {
  it.each(v1.cases)('makes v1 vector $id', async ({ id, timestamp, body, signature }) => {
    expect(await inWorkerd('sign', { secrets: [v1.secret], id, timestamp, body })).toBe(signature)
  })

  it.each(v1a.cases)('makes v1a vector $id', async ({ id, timestamp, body, signature }) => {
    expect(await inWorkerd('sign', { secrets: [v1a.privateKey], id, timestamp, body })).toBe(signature)
  })

  it.each(['v1', 'v1a'] as const)('makes %s secrets that Node signs and verifies with', async (version) => {
    const { secret, publicKey } = await inWorkerd('generate', version)
    const signer = await createSigner([secret])
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1614265330',
      'webhook-signature': await signer.sign('evt_1', 1_614_265_330, '{}'),
    }
    const now = new Date(1_614_265_330_000)
    const verifying = verifyWebhook({ secret: publicKey ?? secret, headers, body: '{}', now })
    await expect(verifying).resolves.toMatchObject({ id: 'evt_1' })
  })
})

describe('in workerd, verifying', () => {
  const all = [
    ...v1.cases.map((one) => ({ ...one, secret: v1.secret, version: 'v1' })),
    ...v1a.cases.map((one) => ({ ...one, secret: v1a.publicKey, version: 'v1a' })),
  ]
  const headersOf = ({ id, timestamp, signature }: { id: string; timestamp: number; signature: string }) => {
    return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
  }

  it.each(all)('accepts $version vector $id', async (vector) => {
    const { secret, body, timestamp, id } = vector
    const input = { secret, body, headers: headersOf(vector), now: timestamp * 1000 }
    expect(await inWorkerd('verify', input)).toBe(id)
  })

  it.each(refusedHeaders)('refuses the vector: $why', async (vector) => {
    const headers: Record<string, string> = headersOf(example)
    for (const name of ['webhook-timestamp', 'webhook-signature'] as const) {
      const value = vector[name]
      if (value === null) delete headers[name]
      else if (value !== undefined) headers[name] = value
    }
    const now = (example.timestamp - (vector.offsetSeconds ?? 0)) * 1000
    const { error } = await outcome('verify', { secret: v1.secret, headers, body: example.body, now })
    expect(error).toMatchObject({ code: 'WEBHOOK_INVALID' })
  })

  it('refuses a changed body', async () => {
    const input = { secret: v1.secret, headers: headersOf(example), now: example.timestamp * 1000 }
    const { error } = await outcome('verify', { ...input, body: `${example.body} ` })
    expect(error).toMatchObject({ code: 'WEBHOOK_INVALID' })
  })
})

describe('in workerd, sealing', () => {
  const key = 'a passphrase that is long enough'

  it('opens what Node sealed, and Node opens what it sealed', async () => {
    const sealer = await createSealer({ current: key })
    const [text, context] = ['whsec_secret', 'wh_1']
    const here = await sealer.seal(text, context)
    expect(await inWorkerd('open', { key, sealed: here, context })).toBe(text)
    const there = await inWorkerd('seal', { key, text, context })
    expect(await sealer.open(there, context)).toBe(text)
  })

  it('refuses what was moved to another webhook, and another key', async () => {
    const sealed = await inWorkerd('seal', { key, text: 'x', context: 'wh_1' })
    expect((await outcome('open', { key, sealed, context: 'wh_2' })).error).toMatchObject({
      code: 'INTERNAL',
    })
    const other = await outcome('open', { key: 'another long passphrase', sealed, context: 'wh_1' })
    expect(other.error).toMatchObject({ code: 'INVALID_SETTING' })
  })
})

describe('in workerd, the fetch sender', () => {
  const policy = { allowInsecure: true }
  const request = (path: string) => {
    return {
      url: `${receiver.url}${path}`,
      headers: { 'webhook-id': 'msg_1' },
      body: '{"é":1.0}',
      timeoutMs: 5000,
    }
  }

  it('posts the exact bytes and gives the answer', async () => {
    receiver.answerNext({ status: 503, headers: { 'retry-after': '120' }, body: 'later\n' })
    const result = await inWorkerd('send', { policy, request: request('/hook?x=1') })
    expect(result).toMatchObject({ kind: 'answer', status: 503, retryAfter: '120', body: 'later\n' })
    const seen = receiver.requests.at(-1)!
    expect(seen).toMatchObject({ method: 'POST', path: '/hook?x=1', headers: { 'webhook-id': 'msg_1' } })
    expect(seen.body.toString('utf8')).toBe('{"é":1.0}')
  })

  it('does not follow a redirect (W6)', async () => {
    receiver.answerNext({ status: 307, headers: { location: '/landed' } })
    const result = await inWorkerd('send', { policy, request: request('/from') })
    expect(result).toMatchObject({ kind: 'answer', status: 307 })
    expect(receiver.requests.map(({ path }) => path)).not.toContain('/landed')
  })

  it('refuses what the guard forbids before anything is sent (W6)', async () => {
    const before = receiver.requests.length
    const result = await inWorkerd('send', { policy: {}, request: request('/never') })
    expect(result).toMatchObject({ kind: 'error', reason: 'forbidden' })
    expect(receiver.requests).toHaveLength(before)
  })

  it('reads 16 KiB of a long answer', async () => {
    receiver.answerNext({ body: 'x'.repeat(100_000) })
    const result = await inWorkerd('send', { policy, request: request('/long') })
    expect(result).toMatchObject({ kind: 'answer', status: 200, body: 'x'.repeat(16_384) })
  })

  it('gives up at the time limit, and names a connection that ends without an answer', async () => {
    const gate = createGate()
    receiver.answerNext({ until: gate.opened })
    const late = await inWorkerd('send', { policy, request: { ...request('/late'), timeoutMs: 1000 } })
    gate.open()
    expect(late).toMatchObject({ kind: 'error', reason: 'timeout' })
    receiver.answerNext({ reset: true })
    const cut = await inWorkerd('send', { policy, request: request('/cut') })
    expect(cut).toMatchObject({ kind: 'error', message: expect.any(String) })
  })
})
