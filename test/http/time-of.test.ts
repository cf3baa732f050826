import { describe, expect, it } from 'vitest'
import { timeOf } from '../../src/http/time-of.ts'

describe('a time in a request', () => {
  it.each([
    ['2026-01-15T12:00:00Z', '2026-01-15T12:00:00.000Z'],
    ['2026-01-15T12:00Z', '2026-01-15T12:00:00.000Z'],
    ['2026-01-15T12:00:00.123456+01:30', '2026-01-15T10:30:00.123Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('takes %s', (text, iso) => {
    expect(timeOf('time', text).toISOString()).toBe(iso)
  })

  it.each([
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00+02:00',
    '2026-00-10T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-15T25:00:00Z',
    '2026-01-15T12:00:00',
    '2026-01-15T12:00 (noon) Z',
    '2026-01-15',
    '0000-01-15T12:00:00Z',
    '',
  ])('refuses %j', (text) => {
    const problem = { code: 'INVALID_INPUT', details: { field: 'time' } }
    expect(() => timeOf('time', text)).toThrow(expect.objectContaining(problem))
  })
})
