import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueBoundaries } from '../../src/schedules/due-boundaries.ts'
import type { Timing } from '../../src/schedules/schedule.ts'
import { newestBoundaries, nextBoundary, validateTiming } from '../../src/schedules/timing.ts'

const now = new Date('2026-01-15T12:00:00Z')

/** The boundaries after one moment up to another, as local and UTC time would be too long: UTC, to the minute. */
function between(timing: Timing, from: string, to: string): string[] {
  const valid = validateTiming(timing, new Date(from))
  const found: string[] = []
  for (let at = nextBoundary(valid, new Date(from)); at !== null && at <= new Date(to);) {
    found.push(at.toISOString().slice(5, 16))
    at = nextBoundary(valid, at)
  }
  return found
}

describe('a timing', () => {
  it('takes five fields, six with the seconds first, and nicknames', () => {
    expect(between({ cron: '*/20 * * * *' }, '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z')).toEqual([
      '01-01T00:20',
      '01-01T00:40',
      '01-01T01:00',
    ])
    const sixth = validateTiming({ cron: '*/20 * * * * *' }, now)
    expect(nextBoundary(sixth, now)).toEqual(new Date('2026-01-15T12:00:20Z'))
    expect(between({ cron: '@daily' }, '2026-01-01T00:00:00Z', '2026-01-02T12:00:00Z')).toEqual([
      '01-02T00:00',
    ])
    expect(validateTiming({ cron: '  0   9 * * MON ', timeZone: 'Europe/Berlin' }, now)).toEqual({
      cron: '0 9 * * MON',
      timeZone: 'Europe/Berlin',
      everyMs: null,
    })
  })

  it('fires every N at the multiples of N', () => {
    const valid = validateTiming({ everyMs: 90_000 }, now)
    expect(nextBoundary(valid, new Date(90_000 * 7))).toEqual(new Date(90_000 * 8))
    expect(nextBoundary(valid, new Date(90_000 * 8 - 1))).toEqual(new Date(90_000 * 8))
  })

  it.each<[string, Timing, string]>([
    ['neither', {}, 'cron'],
    ['both', { cron: '* * * * *', everyMs: 1000 }, 'everyMs'],
    ['a word', { cron: 'often' }, 'cron'],
    ['nothing in it', { cron: '' }, 'cron'],
    ['four fields', { cron: '* * * *' }, 'cron'],
    ['seven fields', { cron: '* * * * * * *' }, 'cron'],
    ['a minute too high', { cron: '60 * * * *' }, 'cron'],
    ['an unknown nickname', { cron: '@often' }, 'cron'],
    ['a single date', { cron: '2036-01-01T00:00:00' }, 'cron'],
    ['a date that never comes', { cron: '0 0 30 2 *' }, 'cron'],
    ['a very long cron', { cron: `${'1,'.repeat(200)}1 * * * *` }, 'cron'],
    ['a number for cron', { cron: 5 as unknown as string }, 'cron'],
    ['an unknown zone', { cron: '* * * * *', timeZone: 'Mars/Olympus' }, 'timeZone'],
    ['an offset for a zone', { cron: '* * * * *', timeZone: '+02:00' }, 'timeZone'],
    ['an empty zone', { cron: '* * * * *', timeZone: '' }, 'timeZone'],
    ['a zone without cron', { everyMs: 1000, timeZone: 'UTC' }, 'timeZone'],
    ['too often', { everyMs: 99 }, 'everyMs'],
    ['too rarely', { everyMs: 366 * 86_400_000 }, 'everyMs'],
    ['half a millisecond', { everyMs: 1000.5 }, 'everyMs'],
  ])('refuses %s and names the field', (_what, timing, field) => {
    expect(() => validateTiming(timing, now)).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', details: { field } }),
    )
  })

  it('says in words which of cron and everyMs is too much, or that both are missing', () => {
    const message = (timing: Timing): string => {
      try {
        return String(validateTiming(timing, now))
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(message({})).toBe('cron or everyMs must be given')
    expect(message({ cron: '* * * * *', everyMs: 1000 })).toBe('everyMs cannot stand beside cron')
  })
})

describe('where clocks go forward', () => {
  // Berlin: 2026-03-29 02:00 CET (01:00Z) becomes 03:00 CEST. New York: 03-08 02:00 EST (07:00Z) becomes 03:00 EDT.
  const berlin = (cron: string) =>
    between({ cron, timeZone: 'Europe/Berlin' }, '2026-03-28T22:59:00Z', '2026-03-30T01:59:00Z')
  const newYork = (cron: string) =>
    between({ cron, timeZone: 'America/New_York' }, '2026-03-08T04:59:00Z', '2026-03-09T07:59:00Z')

  it('fires a fixed time that is skipped at the end of the gap', () => {
    expect(berlin('30 2 * * *')).toEqual(['03-29T01:00', '03-30T00:30'])
    expect(berlin('0 30 2 * * *')).toEqual(['03-29T01:00', '03-30T00:30'])
    expect(newYork('30 2 * * *')).toEqual(['03-08T07:00', '03-09T06:30'])
  })

  it('also where several are listed, and once where they meet', () => {
    expect(berlin('30 2,14 * * *')).toEqual(['03-29T01:00', '03-29T12:30', '03-30T00:30'])
    expect(berlin('0,30 2-3 * * *')).toEqual([
      '03-29T01:00',
      '03-29T01:30',
      '03-30T00:00',
      '03-30T00:30',
      '03-30T01:00',
      '03-30T01:30',
    ])
  })

  it('does not fire a wildcard or step for times that do not exist', () => {
    expect(berlin('*/30 2 * * *')).toEqual(['03-30T00:00', '03-30T00:30'])
    expect(newYork('*/30 2 * * *')).toEqual(['03-09T06:00', '03-09T06:30'])
  })

  it('keeps an hourly cron and an interval hourly', () => {
    const hours = ['03-08T05:00', '03-08T06:00', '03-08T07:00', '03-08T08:00']
    expect(newYork('0 * * * *').slice(0, 4)).toEqual(hours)
    expect(between({ everyMs: 3_600_000 }, '2026-03-08T04:59:00Z', '2026-03-08T08:00:00Z')).toEqual(hours)
  })
})

describe('where clocks go back', () => {
  // Berlin: 2026-10-25 03:00 CEST (01:00Z) becomes 02:00 CET. New York: 11-01 02:00 EDT (06:00Z) becomes 01:00 EST.
  const berlin = (cron: string) =>
    between({ cron, timeZone: 'Europe/Berlin' }, '2026-10-24T21:59:00Z', '2026-10-25T22:00:00Z')
  const newYork = (cron: string) =>
    between({ cron, timeZone: 'America/New_York' }, '2026-11-01T03:59:00Z', '2026-11-01T23:00:00Z')

  it('fires a fixed time in the first of the two hours only', () => {
    expect(berlin('30 2 * * *')).toEqual(['10-25T00:30'])
    expect(newYork('30 1 * * *')).toEqual(['11-01T05:30'])
    expect(berlin('30 2,3 * * *')).toEqual(['10-25T00:30', '10-25T02:30'])
  })

  it('fires a wildcard or step in both', () => {
    expect(berlin('*/30 2 * * *')).toEqual(['10-25T00:00', '10-25T00:30', '10-25T01:00', '10-25T01:30'])
    expect(newYork('*/30 1 * * *')).toEqual(['11-01T05:00', '11-01T05:30', '11-01T06:00', '11-01T06:30'])
    expect(berlin('0 * * * *').slice(1, 5)).toEqual([
      '10-24T23:00',
      '10-25T00:00',
      '10-25T01:00',
      '10-25T02:00',
    ])
  })
})

describe('boundaries', () => {
  const zones = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe']
  const crons = [
    '30 2 * * *',
    '30 1-3 * * *',
    '*/30 * * * *',
    '0 9 * * MON',
    '*/20 2 * * *',
    '15 30 1,2 * * *',
  ]
  const changes = ['2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01']
  const timing = fc.oneof(
    fc.record({ cron: fc.constantFrom(...crons), timeZone: fc.constantFrom(...zones) }),
    fc.record({ everyMs: fc.integer({ min: 60_000, max: 86_400_000 }) }),
  )
  const around = fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -36 * 3_600_000, max: 60 * 3_600_000 }))
    .map(([day, ms]) => new Date(Date.parse(`${day}T00:00:00Z`) + ms))

  it('are the same read forwards and backwards, from wherever one starts (Q5)', () => {
    fc.assert(
      fc.property(timing, around, fc.integer({ min: 0, max: 3 * 86_400_000 }), (given, from, length) => {
        const valid = validateTiming(given, from)
        const upTo = new Date(from.getTime() + length)
        const forwards: Date[] = []
        for (let at = nextBoundary(valid, new Date(from.getTime() - 1)); at !== null && at <= upTo;) {
          forwards.push(at)
          at = nextBoundary(valid, at)
        }
        expect(newestBoundaries(valid, from, upTo, 4)).toEqual(forwards.slice(-4))
      }),
      { numRuns: 300 },
    )
  })

  const minutely = validateTiming({ everyMs: 60_000 }, now)
  const at = (text: string): Date => new Date(`2026-01-15T${text}Z`)
  const firing = (catchUp: 'all' | 'last' | 'none', first: string, upTo: string) => {
    const due = dueBoundaries(minutely, catchUp, at(first), at(upTo))
    return {
      fire: due.fire.map((when) => when.toISOString().slice(11, 19)),
      next: due.next?.toISOString().slice(11, 19),
    }
  }

  it('that were missed all fire under `all`, the newest 64 at most (Q5)', () => {
    expect(firing('all', '11:58:00', '12:00:30')).toEqual({
      fire: ['11:58:00', '11:59:00', '12:00:00'],
      next: '12:01:00',
    })
    const { fire, next } = firing('all', '09:00:00', '12:00:30')
    expect(fire).toHaveLength(64)
    expect([fire[0], fire.at(-1), next]).toEqual(['10:57:00', '12:00:00', '12:01:00'])
  })

  it('that were missed fire once under `last`, however late', () => {
    expect(firing('last', '09:00:00', '12:00:30')).toEqual({ fire: ['12:00:00'], next: '12:01:00' })
    const daily = validateTiming({ cron: '0 0 * * *' }, now)
    expect(dueBoundaries(daily, 'last', at('00:00:00'), at('23:59:59')).fire).toEqual([at('00:00:00')])
  })

  it('that are over five minutes late are passed over under `none`, and the newest fires otherwise', () => {
    expect(firing('none', '09:00:00', '12:00:30')).toEqual({ fire: ['12:00:00'], next: '12:01:00' })
    const hourly = validateTiming({ cron: '0 * * * *' }, now)
    expect(dueBoundaries(hourly, 'none', at('09:00:00'), at('12:05:00'))).toEqual({
      fire: [at('12:00:00')],
      next: at('13:00:00'),
    })
    expect(dueBoundaries(hourly, 'none', at('09:00:00'), at('12:05:01'))).toEqual({
      fire: [],
      next: at('13:00:00'),
    })
  })

  it('that were promised fire even if the rules of the zone have changed since', () => {
    const hourly = validateTiming({ cron: '0 * * * *' }, now)
    expect(dueBoundaries(hourly, 'last', at('12:30:00'), at('12:31:00')).fire).toEqual([at('12:30:00')])
  })
})
