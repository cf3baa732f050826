import { describe, expect, it } from 'vitest'
import { readSettings } from '../../src/settings.ts'

const secret = 'a-secret-of-both-ends-0123456789'

describe('the settings of doorbell, sleep and polls', () => {
  it('default to no doorbell, no sleep, and polls from a second to a minute', () => {
    expect(readSettings({})).toMatchObject({
      doorbell: { secret: null, url: null, port: null, host: '127.0.0.1' },
      sleep: null,
      poll: { minMs: 1_000, maxMs: 60_000 },
    })
  })

  it('open the doorbell with a secret, or only probes with a port', () => {
    expect(readSettings({ MILLRACE_DOORBELL_SECRET: secret }).doorbell).toMatchObject({ secret, port: 8790 })
    expect(readSettings({ MILLRACE_DOORBELL_PORT: '9' }).doorbell).toMatchObject({ secret: null, port: 9 })
  })

  it('are read', () => {
    const env = {
      MILLRACE_SLEEP: '1',
      MILLRACE_SLEEP_AFTER_MS: '5000',
      MILLRACE_SLEEP_MAX_MS: '600000',
      MILLRACE_POLL_MIN_MS: '90000',
    }
    expect(readSettings(env)).toMatchObject({
      sleep: { afterMs: 5_000, maxMs: 600_000 },
      poll: { minMs: 90_000, maxMs: 90_000 },
    })
    expect(readSettings({ ...env, MILLRACE_SLEEP: '0' }).sleep).toBeNull()
  })

  it.each([
    ['MILLRACE_DOORBELL_SECRET', { MILLRACE_DOORBELL_SECRET: secret.slice(0, 23) }],
    ['MILLRACE_DOORBELL_SECRET', { MILLRACE_DOORBELL_SECRET: `${secret} ${secret}` }],
    ['MILLRACE_DOORBELL_SECRET', { MILLRACE_DOORBELL_SECRET: `${secret}é` }],
    ['MILLRACE_DOORBELL_SECRET', { MILLRACE_DOORBELL_URL: 'http://a' }],
    ['MILLRACE_DOORBELL_URL', { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'a:8790' }],
    ['MILLRACE_DOORBELL_URL', { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'nothing' }],
    ['MILLRACE_DOORBELL_URL', { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'https://u@a' }],
    ['MILLRACE_DOORBELL_PORT', { MILLRACE_DOORBELL_PORT: '65536' }],
    ['MILLRACE_DOORBELL_PORT', { MILLRACE_DOORBELL_PORT: '0x10' }],
    ['MILLRACE_SLEEP', { MILLRACE_SLEEP: 'maybe' }],
    ['MILLRACE_SLEEP_AFTER_MS', { MILLRACE_SLEEP: '1', MILLRACE_SLEEP_AFTER_MS: '1e3' }],
    ['MILLRACE_SLEEP_MAX_MS', { MILLRACE_SLEEP: '1', MILLRACE_SLEEP_MAX_MS: '-1' }],
    ['MILLRACE_POLL_MAX_MS', { MILLRACE_POLL_MIN_MS: '5000', MILLRACE_POLL_MAX_MS: '4000' }],
  ])('refuse %s in %j', (setting, env) => {
    expect(() => readSettings(env)).toThrow(
      expect.objectContaining({ code: 'INVALID_SETTING', details: { setting } }),
    )
  })
})
