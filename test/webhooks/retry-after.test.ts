import { describe, expect, it } from 'vitest'
import { parseRetryAfter } from '../../src/webhooks/retry-after.ts'
import vectors from '../vectors/retry-after.json' with { type: 'json' }

const now = new Date(vectors.now)

describe('parseRetryAfter', () => {
  it.each(vectors.cases)('reads $value as $seconds', ({ value, seconds }) => {
    expect(parseRetryAfter(value, now)).toBe(seconds)
  })

  it('ignores a missing header', () => {
    expect(parseRetryAfter(null, now)).toBeNull()
  })

  it('rounds up, so that the time asked for is never undercut', () => {
    const justAfter = new Date(now.getTime() + 1)
    expect(parseRetryAfter('Thu, 15 Jan 2026 12:00:02 GMT', justAfter)).toBe(2)
  })

  it('takes a two-digit year over 50 years ahead for the last century', () => {
    expect(parseRetryAfter('Friday, 15-Jan-99 12:00:00 GMT', now)).toBe(0)
    expect(parseRetryAfter('Tuesday, 15-Jan-30 12:00:00 GMT', now)).toBe(86_400)
  })

  it.each([
    'Fri, 30 Feb 2026 12:00:00 GMT',
    'Thu, 15 Jan 2026 24:00:00 GMT',
    'Thu, 15 Jan 2026 12:60:00 GMT',
    'Thu, 15 Foo 2026 12:00:00 GMT',
    'Thu, 15 Jan 2026 12:01:00 CET',
    'Thu, 15 Jan 2026 12:01:00',
    '15 Jan 2026 12:01:00 GMT',
    '120, 60',
    '１２',
    '+5',
  ])('ignores %j', (value) => {
    expect(parseRetryAfter(value, now)).toBeNull()
  })

  it('reads the day of an asctime date with its leading space', () => {
    expect(parseRetryAfter('Sun Feb  1 12:00:00 2026', now)).toBe(86_400)
    expect(parseRetryAfter('Thu Jan  1 12:00:00 2026', now)).toBe(0)
  })
})
