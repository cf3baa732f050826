import { describe, expect, it } from 'vitest'
import { reasonOf } from '../../src/webhooks/send-error.ts'

const withCode = (code: string, cause?: unknown) => Object.assign(new Error('x', { cause }), { code })

describe('reasonOf', () => {
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['EHOSTUNREACH', 'connect'],
    ['EAI_AGAIN', 'dns'],
    ['UND_ERR_HEADERS_OVERFLOW', 'protocol'],
    ['EWHATEVER', 'connect'],
  ])('calls %s a failure of %s, under a cause too', (code, reason) => {
    expect(reasonOf(withCode(code))).toBe(reason)
    expect(reasonOf(new TypeError('fetch failed', { cause: withCode(code) }))).toBe(reason)
  })

  it('ends on causes in a circle', () => {
    const error: Error = new Error('x')
    error.cause = error
    expect(reasonOf(error)).toBe('connect')
  })
})
