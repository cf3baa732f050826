import { describe, expect, it } from 'vitest'
import { describeError, loggable } from '../../src/errors/describe-error.ts'
import { invalidInput } from '../../src/errors/millrace-error.ts'
import { awkward } from '../support/awkward-throws.ts'

describe('describeError', () => {
  it.each<[unknown, string, string]>([
    [new TypeError('no'), 'no', 'TypeError: no'],
    [new TypeError(''), 'TypeError', 'TypeError: '],
    [invalidInput('x', 'is bad'), 'INVALID_INPUT: x is bad', 'INVALID_INPUT: x is bad'],
    ['text', 'text', 'text'],
    [undefined, 'undefined', 'undefined'],
    [Symbol('s'), 'Symbol(s)', 'Symbol(s)'],
  ])('says of %o what it says', (thrown, short, long) => {
    expect(describeError(thrown)).toBe(short)
    expect(describeError(thrown, { withName: true })).toBe(long)
  })

  it.each(awkward)('does not throw at %s', (_, thrown) => {
    expect(describeError(thrown)).toEqual(expect.any(String))
    expect(describeError(thrown, { withName: true })).toEqual(expect.any(String))
  })
})

describe('loggable', () => {
  it('is the error itself where a log can look at it', () => {
    for (const thrown of [new Error('no', { cause: new Error('why') }), 'text', null, Object.create(null)])
      expect(loggable(thrown)).toBe(thrown)
  })

  it.each(awkward)('is something that a log can look at in place of %s', (_, thrown) => {
    const { name, message, stack } = Object(loggable(thrown)) as Record<string, unknown>
    expect(`${name} ${message} ${stack}`).toEqual(expect.any(String))
  })
})
