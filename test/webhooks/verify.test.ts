import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { generateSecret } from '../../src/webhooks/secrets.ts'
import { createSigner } from '../../src/webhooks/sign.ts'
import { parseWebhook, verifyWebhook, type VerifyWebhookInput } from '../../src/webhooks/verify.ts'
import vectors from '../vectors/webhook-signatures.json' with { type: 'json' }

const { v1, v1a, refusedHeaders } = vectors
const all = [
  ...v1.cases.map((one) => ({ ...one, secret: v1.secret, version: 'v1' })),
  ...v1a.cases.map((one) => ({ ...one, secret: v1a.publicKey, version: 'v1a' })),
]
const example = v1.cases[0] as (typeof v1.cases)[number]
const exampleAt = (offsetSeconds: number) => new Date((example.timestamp + offsetSeconds) * 1000)

function received(changes: Record<string, string | undefined> = {}) {
  const headers: Record<string, string | undefined> = {
    'webhook-id': example.id,
    'webhook-timestamp': String(example.timestamp),
    'webhook-signature': example.signature,
    ...changes,
  }
  return { secret: v1.secret, headers, body: example.body, now: exampleAt(0) }
}

const refusal = (reason: string) => ({ code: 'WEBHOOK_INVALID', status: 401, details: { reason } })

describe('verifyWebhook', () => {
  it.each([
    [{ secret: null }, 'secret'],
    [{ secret: [] }, 'secret'],
    [{ secret: 5 }, 'secret'],
    [{ secrets: [null] }, 'secret'],
    [{ secrets: null }, 'secrets'],
    [{ secrets: 'whsec_x' }, 'secrets'],
    [{ headers: undefined }, 'headers'],
    [{ headers: null }, 'headers'],
    [{ headers: [] }, 'headers'],
    [{ headers: 'webhook-id: x' }, 'headers'],
    [{ now: example.timestamp }, 'now'],
    [{ now: '2026-01-01' }, 'now'],
    [{ now: new Date(Number.NaN) }, 'now'],
    [{ toleranceSeconds: '300' }, 'toleranceSeconds'],
    [{ toleranceSeconds: Number.NaN }, 'toleranceSeconds'],
    [{ toleranceSeconds: -1 }, 'toleranceSeconds'],
  ])('tells a wrong call from a bad webhook: %j names %s', async (wrong, field) => {
    const input = { ...received(), ...wrong } as unknown as VerifyWebhookInput
    await expect(verifyWebhook(input)).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field } })
  })

  it.each(all)('accepts $version vector $id', async ({ id, timestamp, body, signature, secret }) => {
    const headers = new Headers({
      'Webhook-Id': id,
      'Webhook-Timestamp': String(timestamp),
      'Webhook-Signature': signature,
    })
    const now = new Date(timestamp * 1000)
    const expected = { id, timestamp: now }
    expect(await verifyWebhook({ secret, headers, body, now })).toEqual(expected)
    const bytes = new TextEncoder().encode(body)
    expect(await verifyWebhook({ secrets: [secret], headers, body: bytes, now })).toEqual(expected)
  })

  it.each(refusedHeaders)('refuses the vector: $why', async (vector) => {
    const input = received()
    if (vector['webhook-timestamp'] !== undefined)
      input.headers['webhook-timestamp'] = vector['webhook-timestamp']
    if (vector['webhook-signature'] === null) delete input.headers['webhook-signature']
    if (typeof vector['webhook-signature'] === 'string') {
      input.headers['webhook-signature'] = vector['webhook-signature']
    }
    const now = exampleAt(-(vector.offsetSeconds ?? 0))
    await expect(verifyWebhook({ ...input, now })).rejects.toMatchObject({ code: 'WEBHOOK_INVALID' })
  })

  it.each([
    ['missing_header', { 'webhook-id': undefined }],
    ['missing_header', { 'webhook-timestamp': '' }],
    ['missing_header', { 'webhook-signature': undefined }],
    ['missing_header', { 'Webhook-Id': 'another' }],
    ['bad_id', { 'webhook-id': 'evt.1' }],
    ['bad_timestamp', { 'webhook-timestamp': '1614265330xyz' }],
    ['bad_timestamp', { 'webhook-timestamp': ' 1614265330' }],
    ['bad_timestamp', { 'webhook-timestamp': '1614265330.0' }],
    ['bad_timestamp', { 'webhook-timestamp': '0x60380000' }],
    ['too_new', { 'webhook-timestamp': '9'.repeat(400) }],
    ['no_match', { 'webhook-signature': 'v9,AAAA' }],
    ['no_match', { 'webhook-signature': example.signature.replace('v1,', 'v1a,') }],
    ['no_match', { 'webhook-signature': example.signature.slice('v1,'.length) }],
    ['no_match', { 'webhook-signature': 'v1,' }],
    ['no_match', { 'webhook-signature': ' ' }],
    ['too_many_signatures', { 'webhook-signature': `${example.signature} `.repeat(17) }],
  ])('refuses with %s when the headers have %j', async (reason, changes) => {
    await expect(verifyWebhook(received(changes))).rejects.toMatchObject(refusal(reason))
  })

  it('holds the tolerance to the second, both ways', async () => {
    const at = (seconds: number) => verifyWebhook({ ...received(), now: exampleAt(seconds) })
    await expect(at(300)).resolves.toMatchObject({ id: example.id })
    await expect(at(-300)).resolves.toMatchObject({ id: example.id })
    await expect(at(301)).rejects.toMatchObject(refusal('too_old'))
    await expect(at(-301)).rejects.toMatchObject(refusal('too_new'))
    const strict = { ...received(), toleranceSeconds: 10, now: exampleAt(11) }
    await expect(verifyWebhook(strict)).rejects.toMatchObject(refusal('too_old'))
  })

  it('takes one matching signature among others and unknown versions', async () => {
    const signature = `v9,xyz v1a,AAAA v1,AAAA ${example.signature}`
    const headers = { 'webhook-signature': signature }
    await expect(verifyWebhook(received(headers))).resolves.toMatchObject({ id: example.id })
  })

  it('takes one matching secret during a rotation', async () => {
    const [old, next] = [await generateSecret('v1'), await generateSecret('v1')]
    const signer = await createSigner([next.secret, old.secret])
    const headers = { 'webhook-signature': await signer.sign(example.id, example.timestamp, example.body) }
    for (const secrets of [[old.secret], [next.secret], [v1.secret, old.secret]]) {
      const input = { ...received(headers), secret: undefined, secrets }
      await expect(verifyWebhook(input)).resolves.toMatchObject({ id: example.id })
    }
    await expect(verifyWebhook(received(headers))).rejects.toMatchObject(refusal('no_match'))
  })

  it('does not take one message for another whose parts are cut elsewhere', async () => {
    const signer = await createSigner([v1.secret])
    const signature = await signer.sign('evt_1', 1_614_265_330, '1614265331.5')
    const headers = {
      'webhook-id': 'evt_1.1614265330',
      'webhook-timestamp': '1614265331',
      'webhook-signature': signature,
    }
    await expect(verifyWebhook({ ...received(headers), body: '5' })).rejects.toMatchObject(refusal('bad_id'))
  })

  it('refuses every change to a signed message', async () => {
    const original = new TextEncoder().encode(example.body)
    const flips = fc.tuple(fc.nat(original.length - 1), fc.integer({ min: 1, max: 255 }))
    await fc.assert(
      fc.asyncProperty(flips, async ([index, mask]) => {
        const body = original.slice()
        body[index] = Number(body[index]) ^ mask
        await expect(verifyWebhook({ ...received(), body })).rejects.toMatchObject(refusal('no_match'))
      }),
    )
    const signature = Buffer.from(example.signature.slice('v1,'.length), 'base64')
    await fc.assert(
      fc.asyncProperty(fc.nat(31), fc.integer({ min: 1, max: 255 }), async (index, mask) => {
        const changed = Buffer.from(signature)
        changed[index] = Number(changed[index]) ^ mask
        const headers = { 'webhook-signature': `v1,${changed.toString('base64')}` }
        await expect(verifyWebhook(received(headers))).rejects.toMatchObject(refusal('no_match'))
      }),
    )
  })

  it('accepts what an independent signer signed', async () => {
    const signature = new Webhook(v1.secret).sign(example.id, exampleAt(0), example.body)
    const headers = { 'webhook-signature': signature }
    await expect(verifyWebhook(received(headers))).resolves.toMatchObject({ id: example.id })
  })

  it.each([undefined, '', 'whsec_', v1a.privateKey, 'whpk_AAAA'])('refuses the secret %j', async (secret) => {
    const verifying = verifyWebhook({ ...received(), secret })
    await expect(verifying).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'secret' } })
  })

  it('refuses a body that was parsed already', async () => {
    const verifying = verifyWebhook({ ...received(), body: { test: 1 } as unknown as string })
    await expect(verifying).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'body' } })
  })
})

describe('parseWebhook', () => {
  it('gives the payload of an authentic webhook', async () => {
    const parsed = await parseWebhook<{ test: number }>(received())
    expect(parsed).toEqual({ id: example.id, timestamp: exampleAt(0), payload: { test: 2432232314 } })
  })

  it('verifies before it parses', async () => {
    await expect(parseWebhook({ ...received(), body: '{' })).rejects.toMatchObject(refusal('no_match'))
  })

  it.each(['', '{', new Uint8Array([0x22, 0xff, 0x22])])(
    'refuses an authentic body that is no JSON',
    async (body) => {
      const signer = await createSigner([v1.secret])
      const headers = { 'webhook-signature': await signer.sign(example.id, example.timestamp, body) }
      const parsing = parseWebhook({ ...received(headers), body })
      await expect(parsing).rejects.toMatchObject({ code: 'INVALID_JSON' })
    },
  )
})
