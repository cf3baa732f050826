import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createSealer, isSealed } from '../../src/webhooks/seal.ts'

const base64Key = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const passphrase = 'a long enough passphrase'

describe('createSealer', () => {
  it.each([base64Key(1), passphrase])('opens what it sealed, under the key %s', async (current) => {
    const sealer = await createSealer({ current })
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => {
        const sealed = await sealer.seal(text, 'wh_1')
        expect(isSealed(sealed)).toBe(true)
        expect(await sealer.open(sealed, 'wh_1')).toBe(text)
      }),
      { numRuns: 30 },
    )
  })

  it('gives the same key to every process that has the passphrase', async () => {
    const [one, two] = [
      await createSealer({ current: passphrase }),
      await createSealer({ current: passphrase }),
    ]
    expect(await two.open(await one.seal('whsec_x', 'wh_1'), 'wh_1')).toBe('whsec_x')
  })

  it('never seals twice alike, and shows nothing of the text', async () => {
    const sealer = await createSealer({ current: passphrase })
    const [one, two] = [await sealer.seal('whsec_secret', 'wh_1'), await sealer.seal('whsec_secret', 'wh_1')]
    expect(one).not.toBe(two)
    expect(one).not.toContain('secret')
  })

  it('opens under previous keys, seals under the current one, and tells them apart', async () => {
    const old = await createSealer({ current: base64Key(1) })
    const next = await createSealer({ current: base64Key(2), previous: [base64Key(1)] })
    const sealed = await old.seal('whsec_x', 'wh_1')
    expect(await next.open(sealed, 'wh_1')).toBe('whsec_x')
    expect(next.isStale(sealed)).toBe(true)
    expect(next.isStale(await next.seal('whsec_x', 'wh_1'))).toBe(false)
  })

  it('says that the key is the wrong one', async () => {
    const sealed = await (await createSealer({ current: base64Key(1) })).seal('whsec_x', 'wh_1')
    const other = await createSealer({ current: base64Key(2) })
    await expect(other.open(sealed, 'wh_1')).rejects.toMatchObject({
      code: 'INVALID_SETTING',
      details: { setting: 'MILLRACE_ENCRYPTION_KEY' },
    })
  })

  it('refuses what was moved to another webhook', async () => {
    const sealer = await createSealer({ current: passphrase })
    const sealed = await sealer.seal('whsec_x', 'wh_1')
    await expect(sealer.open(sealed, 'wh_2')).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  it('refuses every change to the initialisation vector and the ciphertext', async () => {
    const sealer = await createSealer({ current: passphrase })
    const parts = (await sealer.seal('whsec_x', 'wh_1')).split('.')
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(2, 3),
        fc.nat(10),
        fc.integer({ min: 1, max: 255 }),
        async (at, index, mask) => {
          const bytes = Buffer.from(String(parts[at]), 'base64')
          bytes[index] = Number(bytes[index]) ^ mask
          const changed = parts.with(at, bytes.toString('base64')).join('.')
          await expect(sealer.open(changed, 'wh_1')).rejects.toMatchObject({ code: 'INTERNAL' })
        },
      ),
    )
  })

  it.each(['', 'v1', 'v2.a.b.c', 'v1.a.b.', 'v1.a.AAAA.AAAA', 'whsec_x'])(
    'refuses %j as sealed text',
    async (text) => {
      const sealer = await createSealer({ current: passphrase })
      await expect(sealer.open(text, 'wh_1')).rejects.toMatchObject({ code: 'INTERNAL' })
    },
  )

  it.each(['', 'short', 'fifteen letters'])('refuses the key %j, naming the setting', async (current) => {
    const naming = (setting: string) => {
      const message = expect.stringMatching(new RegExp(`^${setting} must be`))
      return { code: 'INVALID_SETTING', message, details: { setting } }
    }
    await expect(createSealer({ current })).rejects.toMatchObject(naming('MILLRACE_ENCRYPTION_KEY'))
    const previous = [passphrase, current]
    await expect(createSealer({ current: passphrase, previous })).rejects.toMatchObject(
      naming('MILLRACE_PREVIOUS_ENCRYPTION_KEYS'),
    )
  })

  it('knows a secret in the clear from a sealed one', () => {
    expect(isSealed('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')).toBe(false)
  })
})
