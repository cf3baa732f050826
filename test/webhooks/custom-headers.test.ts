import { describe, expect, it } from 'vitest'
import { validateCustomHeaders } from '../../src/webhooks/custom-headers.ts'

const refused = (field: string) => expect.objectContaining({ code: 'INVALID_INPUT', details: { field } })

describe('validateCustomHeaders', () => {
  it('returns what may be set, with names in lower case', () => {
    const headers = { Authorization: 'Bearer x', 'User-Agent': 'shop/1', 'X-Empty': '', __proto__x: 'y' }
    expect(validateCustomHeaders(headers)).toEqual({
      authorization: 'Bearer x',
      'user-agent': 'shop/1',
      'x-empty': '',
      __proto__x: 'y',
    })
  })

  it.each([
    'host',
    'Host',
    'content-length',
    'Content-Type',
    'content-encoding',
    'accept-encoding',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'http2-settings',
    'expect',
    'proxy-authorization',
    'Proxy-Connection',
    'webhook-id',
    'Webhook-Signature',
    'webhook-anything',
    'ce-id',
  ])('refuses to set %s', (name) => {
    expect(() => validateCustomHeaders({ [name]: 'x' })).toThrow(refused(`headers.${name.toLowerCase()}`))
  })

  it.each(['', 'a b', 'a:b', 'a\r\nb', ':path', 'é', 'a\u0000'])('refuses the name %j', (name) => {
    expect(() => validateCustomHeaders({ [name]: 'x' })).toThrow(refused('headers'))
  })

  it.each(['a\r\nb: c', 'a\nb', 'a\tb', 'a\u0000', 'a\u007f', 'é', '🦊', ' a', 'a ', 5, null])(
    'refuses the value %j',
    (value) => {
      expect(() => validateCustomHeaders({ 'x-a': value })).toThrow(refused('headers.x-a'))
    },
  )

  it('keeps a header whose name is a member of every object', () => {
    const headers = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, unknown>
    expect(Object.entries(validateCustomHeaders(headers))).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ])
  })

  it('refuses a name twice in different case', () => {
    expect(() => validateCustomHeaders({ 'X-A': '1', 'x-a': '2' })).toThrow(refused('headers'))
  })

  it('takes 32 headers and 4 KiB, and not one more', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, '']))
    expect(Object.keys(validateCustomHeaders(many(32)))).toHaveLength(32)
    expect(() => validateCustomHeaders(many(33))).toThrow(refused('headers'))
    const long = (length: number) => ({ 'x-a': 'v'.repeat(length) })
    const room = 4096 - 'x-a: \r\n'.length
    expect(validateCustomHeaders(long(room))['x-a']).toHaveLength(room)
    expect(() => validateCustomHeaders(long(room + 1))).toThrow(refused('headers'))
  })
})
