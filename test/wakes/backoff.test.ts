import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBackoff, defaultBackoff } from '../../src/wakes/backoff.ts'

describe('the backoff', () => {
  it('doubles from 50 ms to 2 s', () => {
    const backoff = createBackoff(defaultBackoff, () => 1)
    expect(Array.from({ length: 8 }, () => backoff.next())).toEqual([
      50, 100, 200, 400, 800, 1600, 2000, 2000,
    ])
  })

  it('waits at least half of its bound, and never longer than it', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
        const backoff = createBackoff(defaultBackoff, () => random)
        for (const bound of [50, 100, 200, 400, 800, 1600, 2000, 2000]) {
          const wait = backoff.next()
          expect(wait).toBeGreaterThanOrEqual(bound / 2)
          expect(wait).toBeLessThanOrEqual(bound)
        }
      }),
    )
  })

  it('begins anew only after a connection that stood for 30 s', () => {
    const backoff = createBackoff(defaultBackoff, () => 1)
    backoff.next()
    backoff.next()
    backoff.stood(29_999)
    expect(backoff.next()).toBe(200)
    backoff.stood(30_000)
    expect(backoff.next()).toBe(50)
  })
})
