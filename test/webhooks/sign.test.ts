import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { createNodeSigner } from '../../src/webhooks/node-sign.ts'
import {
  generateSecret,
  parseSigningSecret,
  parseVerifyingSecret,
  publicKeyOf,
} from '../../src/webhooks/secrets.ts'
import { createSigner, type CreateSigner } from '../../src/webhooks/sign.ts'
import vectors from '../vectors/webhook-signatures.json' with { type: 'json' }

const { v1, v1a } = vectors
const signers: [string, CreateSigner][] = [
  ['WebCrypto', createSigner],
  ['node:crypto', createNodeSigner],
]
const badSecrets = [
  ...vectors.refused,
  { why: 'no prefix', secret: v1.secret.slice('whsec_'.length) },
  { why: '23 bytes', secret: `whsec_${Buffer.alloc(23).toString('base64')}` },
  { why: '65 bytes', secret: `whsec_${Buffer.alloc(65).toString('base64')}` },
  { why: 'padding left out', secret: `whsec_${Buffer.alloc(25).toString('base64').replaceAll('=', '')}` },
  { why: 'trailing bits', secret: `whsec_${Buffer.alloc(25).toString('base64').replace(/A==$/, 'B==')}` },
  { why: 'white space inside', secret: v1.secret.replace('MfKQ', 'Mf KQ') },
  { why: 'base64url', secret: `whsec_${'-_'.repeat(16)}` },
  { why: 'a public key', secret: v1a.publicKey },
  { why: 'private key of 31 bytes', secret: `whsk_${Buffer.alloc(31).toString('base64')}` },
  { why: 'halves that do not belong together', secret: `whsk_${Buffer.alloc(64, 7).toString('base64')}` },
]

describe.each(signers)('the %s signer', (_name, create) => {
  it.each(v1.cases)('signs v1 vector $id', async ({ id, timestamp, body, signature }) => {
    const signer = await create([v1.secret])
    expect(await signer.sign(id, timestamp, body)).toBe(signature)
    expect(await signer.sign(id, timestamp, new TextEncoder().encode(body))).toBe(signature)
  })

  it.each(v1a.cases)('signs v1a vector $id', async ({ id, timestamp, body, signature }) => {
    const seedOnly = `whsk_${Buffer.from(v1a.privateKeySeedHex, 'hex').toString('base64')}`
    for (const secret of [v1a.privateKey, seedOnly]) {
      const signer = await create([secret])
      expect(await signer.sign(id, timestamp, body)).toBe(signature)
      expect(await signer.sign(id, timestamp, new TextEncoder().encode(body))).toBe(signature)
    }
  })

  it('signs with every secret, in their order', async () => {
    const signer = await create([v1a.privateKey, v1.secret])
    const [first, second] = [v1a.cases[0], v1.cases[0]]
    const header = await signer.sign(String(first?.id), Number(first?.timestamp), String(first?.body))
    expect(header).toBe(`${first?.signature} ${second?.signature}`)
  })

  it.each(badSecrets)('refuses a secret that is wrong: $why', async ({ secret }) => {
    const failure = await Promise.resolve()
      .then(() => create([secret]))
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'INVALID_INPUT', details: { field: 'secret' } })
    if (secret.length > 12) expect(String(failure)).not.toContain(secret.slice(8))
  })

  it('refuses to be made without a secret', async () => {
    const making = Promise.resolve().then(() => create([]))
    await expect(making).rejects.toMatchObject({ code: 'INVALID_INPUT', details: { field: 'secret' } })
  })

  it.each(['', 'evt.1', 'evt 1', 'evt\n1', 'é', 'x'.repeat(257)])('refuses the id %j', async (id) => {
    const signer = await create([v1.secret])
    const signing = Promise.resolve().then(() => signer.sign(id, 1, ''))
    await expect(signing).rejects.toMatchObject({ details: { field: 'id' } })
  })

  it.each([1.5, -1, Number.NaN, 1e20])('refuses the timestamp %d', async (timestamp) => {
    const signer = await create([v1.secret])
    const signing = Promise.resolve().then(() => signer.sign('evt_1', timestamp, ''))
    await expect(signing).rejects.toMatchObject({ details: { field: 'timestamp' } })
  })

  it('makes signatures that an independent verifier accepts', async () => {
    const { secret } = await generateSecret('v1')
    const signer = await create([secret])
    const seconds = Math.floor(Date.now() / 1000)
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (body) => {
        const headers = {
          'webhook-id': 'msg_1',
          'webhook-timestamp': String(seconds),
          'webhook-signature': await signer.sign('msg_1', seconds, body),
        }
        new Webhook(secret).verify(body, headers, { jsonParse: false })
      }),
      { numRuns: 50 },
    )
  })
})

describe('generated secrets', () => {
  it('are 32 random bytes for v1', async () => {
    const [one, two] = [await generateSecret('v1'), await generateSecret('v1')]
    expect(one.secret).not.toBe(two.secret)
    expect(one.publicKey).toBeNull()
    expect(parseSigningSecret(one.secret)).toMatchObject({ version: 'v1', key: { length: 32 } })
    expect(await publicKeyOf(one.secret)).toBeNull()
  })

  it('are a pair of keys for v1a', async () => {
    const { secret, publicKey } = await generateSecret('v1a')
    expect(await publicKeyOf(secret)).toBe(publicKey)
    expect(parseVerifyingSecret(String(publicKey))).toMatchObject({ version: 'v1a' })
    expect(await publicKeyOf(v1a.privateKey)).toBe(v1a.publicKey)
  })
})
