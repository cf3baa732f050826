import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideOutcome, defaultScheduleMs, type AttemptFacts } from '../../src/webhooks/outcome.ts'
import type { SendErrorReason, SendResult } from '../../src/webhooks/sender.ts'

const now = new Date('2026-01-15T12:00:00Z')

function answer(status: number, retryAfter: string | null = null): SendResult {
  return { kind: 'answer', status, retryAfter, body: '', durationMs: 1 }
}

function failure(reason: SendErrorReason): SendResult {
  return { kind: 'error', reason, message: 'it broke', durationMs: 1 }
}

function decide(result: SendResult, changes: Partial<AttemptFacts> = {}) {
  return decideOutcome({ result, attempt: 1, maxAttempts: 10, random: () => 0, now: () => now, ...changes })
}

describe('decideOutcome', () => {
  it.each([200, 201, 202, 204, 299])('takes %d for delivered, on the last attempt too', (status) => {
    expect(decide(answer(status))).toEqual({ kind: 'delivered' })
    expect(decide(answer(status), { attempt: 10 })).toEqual({ kind: 'delivered' })
  })

  it.each([100, 199, 301, 302, 304, 307, 400, 401, 404, 408, 409, 425, 429, 500, 502, 503, 504, 599])(
    'tries again after %d, and says so',
    (status) => {
      expect(decide(answer(status))).toMatchObject({
        kind: 'retry',
        delayMs: 5000,
        why: expect.stringContaining(`${status}`),
      })
    },
  )

  it.each(['timeout', 'connect', 'dns', 'tls', 'reset', 'forbidden', 'protocol'] as const)(
    'tries again after %s',
    (reason) => {
      expect(decide(failure(reason))).toEqual({ kind: 'retry', delayMs: 5000, why: `${reason}: it broke` })
      expect(decide(failure(reason), { attempt: 10 })).toEqual({ kind: 'dead', why: `${reason}: it broke` })
    },
  )

  it('does not count an attempt that the worker gave up itself', () => {
    expect(decide(failure('aborted'), { attempt: 10 })).toEqual({ kind: 'abandoned' })
  })

  it('disables on 410, on the last attempt too', () => {
    expect(decide(answer(410)).kind).toBe('disable')
    expect(decide(answer(410, '60'), { attempt: 10 }).kind).toBe('disable')
  })

  it.each([1, 2, 3, 10, 15])('makes exactly %d attempts for that limit (W1)', (maxAttempts) => {
    const kinds: string[] = []
    for (let attempt = 1; kinds.at(-1) !== 'dead'; attempt++) {
      kinds.push(decide(answer(500), { attempt, maxAttempts }).kind)
    }
    expect(kinds).toEqual([...Array.from({ length: maxAttempts - 1 }, () => 'retry'), 'dead'])
  })

  it('waits by the schedule, and past its end as long as the last entry', () => {
    const delays = Array.from({ length: 12 }, (_, index) => {
      const outcome = decide(answer(500), { attempt: index + 1, maxAttempts: 99 })
      return outcome.kind === 'retry' ? outcome.delayMs : null
    })
    expect(delays).toEqual([...defaultScheduleMs.slice(1), 86_400_000, 86_400_000, 86_400_000])
    expect(decide(answer(500), { scheduleMs: [7] })).toMatchObject({ delayMs: 7 })
    expect(decide(answer(500), { scheduleMs: [] })).toMatchObject({ delayMs: 0 })
  })

  it('adds jitter of up to the percentage, and never takes off', () => {
    const facts = { random: () => 0.5 }
    expect(decide(answer(500), facts)).toMatchObject({ delayMs: 5500 })
    expect(decide(answer(500), { ...facts, jitterPercent: 0 })).toMatchObject({ delayMs: 5000 })
  })

  it('never undercuts Retry-After, nor the schedule', () => {
    expect(decide(answer(503, '3600'), { random: () => 0.99 })).toMatchObject({ delayMs: 3_600_000 })
    expect(decide(answer(429, '1'))).toMatchObject({ delayMs: 5000 })
    expect(decide(answer(503, '999999999'))).toMatchObject({ delayMs: 86_400_000 })
    expect(decide(answer(503, 'Thu, 15 Jan 2026 12:01:00 GMT'))).toMatchObject({ delayMs: 60_000 })
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.nat(200_000), fc.integer({ min: 1, max: 20 }), random, (seconds, attempt, value) => {
        const facts = { attempt, maxAttempts: 99, random: () => value }
        const outcome = decide(answer(503, String(seconds)), facts)
        const delayMs = outcome.kind === 'retry' ? outcome.delayMs : -1
        const scheduledMs = Number(defaultScheduleMs[Math.min(attempt, 9)])
        expect(delayMs).toBeGreaterThanOrEqual(Math.max(Math.min(seconds, 86_400) * 1000, scheduledMs))
        expect(delayMs).toBeLessThanOrEqual(Math.max(86_400_000, scheduledMs * 1.2))
      }),
    )
  })
})
