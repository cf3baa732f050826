import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { checkTargetUrl, isPublicAddress } from '../../src/webhooks/target-url.ts'
import vectors from '../vectors/webhook-targets.json' with { type: 'json' }

const secureSpellings = vectors.blocked
  .filter(({ url }) => url.startsWith('http://'))
  .map(({ url, why }) => ({ url: url.replace('http://', 'https://'), why }))

/** Every range that must be out of reach, written down apart from the code. */
const forbiddenRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '168.63.129.16/32',
  '::/96',
  '::ffff:0:0/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/32',
  '2001:10::/28',
  '2001:20::/28',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

/** An address of the range, picked by random bytes. */
function addressIn(cidr: string, random: Uint8Array): string {
  const [base, bits] = ipaddr.parseCIDR(cidr)
  const bytes = base.toByteArray().map((byte, index) => {
    const free = Math.min(8, Math.max(0, (index + 1) * 8 - bits))
    return byte | (Number(random[index]) & ((1 << free) - 1))
  })
  return ipaddr.fromByteArray(bytes).toString()
}

const host = (ip: string) => (ip.includes(':') ? `[${ip}]` : ip)
const randomBytes = fc.uint8Array({ minLength: 16, maxLength: 16 })

describe('checkTargetUrl (W6)', () => {
  it.each(vectors.blocked)('refuses $url: $why', ({ url }) => {
    expect(checkTargetUrl(url, {})).toMatchObject({ ok: false, reason: expect.stringMatching(/\w/) })
  })

  it.each(secureSpellings)('refuses $url for its host and not for its scheme: $why', ({ url }) => {
    const check = checkTargetUrl(url, {})
    expect(check.ok).toBe(false)
    if (!check.ok) expect(check.reason).not.toContain('https')
  })

  it.each(vectors.allowed)('accepts $url: $why', ({ url }) => {
    expect(checkTargetUrl(url, {})).toEqual({ ok: true, url: new URL(url) })
  })

  it.each([
    'https://LOCALHOST/',
    'https://localhost./',
    'https://example.com./',
    'https://a..com/',
    'https://com/',
    'https://intra/',
    'https://a.b.internal/',
    'https://router.home.arpa/',
    'https://metadata.goog/',
    'https://api.default.svc.cluster.local/',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://①②⑦.0.0.1/',
    'https://127。0。0。1/',
    'https://%31%32%37.0.0.1/',
    'https://0xA9FEA9FE/',
    'https://[::ffff:8.8.8.8]/',
    'https://168.63.129.16/',
    'https:\\\\127.0.0.1\\',
    'https://example.com\\@127.0.0.1/',
    'https://exa\tmple.com/',
    ' https://example.com/',
    'https://user@example.com/',
    'https://:pass@example.com/',
    'https://example.com/#',
    `https://example.com/${'x'.repeat(2048)}`,
    'ws://example.com/',
    '//example.com/',
    '/hooks',
    '',
  ])('refuses %j', (url) => {
    expect(checkTargetUrl(url, {}).ok).toBe(false)
  })

  it('refuses http for its scheme alone, and takes it where insecure targets are allowed', () => {
    const refusal = { ok: false, reason: 'must start with https://' }
    expect(checkTargetUrl('http://example.com/', {})).toEqual(refusal)
    expect(checkTargetUrl('http://example.com/', { allowedCidrs: ['10.0.0.0/8'] })).toEqual(refusal)
    for (const url of [
      'http://example.com/',
      'http://localhost:3000/',
      'http://[::1]/',
      'https://10.0.0.1/',
    ]) {
      expect(checkTargetUrl(url, { allowInsecure: true })).toMatchObject({ ok: true })
    }
  })

  it.each([
    'ftp://a.com/',
    'file:///etc/passwd',
    'http://u:p@localhost/',
    'http://localhost/#x',
    'http://localhost:0/',
  ])('refuses %s even where insecure targets are allowed', (url) => {
    expect(checkTargetUrl(url, { allowInsecure: true }).ok).toBe(false)
  })

  it('refuses every address of every forbidden range, in every spelling of IPv4', () => {
    fc.assert(
      fc.property(fc.constantFrom(...forbiddenRanges), randomBytes, (cidr, random) => {
        const ip = addressIn(cidr, random)
        expect(isPublicAddress(ip, {})).toBe(false)
        expect(checkTargetUrl(`https://${host(ip)}/`, {}).ok).toBe(false)
        if (ip.includes(':')) return
        const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
        const whole = ((a * 256 + b) * 256 + c) * 256 + d
        const spellings = [
          whole,
          `0x${whole.toString(16)}`,
          `0${a.toString(8)}.${b}.${c}.${d}`,
          `${a}.${b}.${c * 256 + d}`,
        ]
        for (const spelling of spellings) expect(checkTargetUrl(`https://${spelling}/`, {}).ok).toBe(false)
        for (const prefix of ['::ffff:', '64:ff9b::', '::', '::ffff:0:']) {
          expect(isPublicAddress(`${prefix}${ip}`, {})).toBe(false)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

describe('isPublicAddress (W6)', () => {
  it.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '2a00:1450:4001::8a'])('accepts %s', (ip) => {
    expect(isPublicAddress(ip, {})).toBe(true)
  })

  it.each(['', 'example.com', '8.8', '0x8.8.8.8', '010.8.8.8', '8.8.8.8 ', '[2606:4700::1]', '8.8.8.8/32'])(
    'refuses %j, which is no plain address',
    (ip) => {
      expect(isPublicAddress(ip, {})).toBe(false)
    },
  )

  it('lets the policy open private ranges, and only those', () => {
    const policy = { allowedCidrs: ['10.20.0.0/16', 'fd00:1::/32'] }
    expect(isPublicAddress('10.20.3.4', policy)).toBe(true)
    expect(isPublicAddress('10.21.3.4', policy)).toBe(false)
    expect(isPublicAddress('fd00:1::5', policy)).toBe(true)
    expect(isPublicAddress('::ffff:10.20.3.4', policy)).toBe(false)
    expect(checkTargetUrl('https://10.20.3.4/', policy).ok).toBe(true)
  })

  it.each(['10.0.0.0', '10/8', '10.0.0.0/33', 'x/8', ''])(
    'reports the range %j as a wrong setting',
    (cidr) => {
      const check = () => isPublicAddress('8.8.8.8', { allowedCidrs: [cidr] })
      expect(check).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }))
    },
  )
})
