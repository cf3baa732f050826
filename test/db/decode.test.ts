import { describe, expect, it } from 'vitest'
import { toNumber, toNumberOrNull, toNumbers } from '../../src/db/decode.ts'

const incomplete = expect.objectContaining({
  code: 'DATABASE_UNAVAILABLE',
  retryable: true,
  message: expect.stringContaining('incomplete'),
})

describe('numbers of a raw row', () => {
  it('reads what drivers give', () => {
    expect([toNumber('42'), toNumber(42), toNumber(42n), toNumber('-1')]).toEqual([42, 42, 42, -1])
    expect([toNumbers('{1,2}'), toNumbers('{}'), toNumbers(['3', 4])]).toEqual([[1, 2], [], [3, 4]])
    expect([toNumberOrNull(null), toNumberOrNull('0')]).toEqual([null, 0])
  })

  it.each([undefined, null, '', ' ', 'x', Number.NaN, 1.5, '9007199254740993'])(
    'S1: refuses %s as a number, which would be a wrong offset',
    (value) => {
      expect(() => toNumber(value)).toThrow(incomplete)
    },
  )

  it.each([undefined, null, '', '{', '{NULL}', '{1,}', '1', 1, [null], {}])(
    'S1: refuses %j as a list of numbers',
    (value) => {
      expect(() => toNumbers(value)).toThrow(incomplete)
    },
  )
})
