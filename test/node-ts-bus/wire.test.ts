import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeAttributes, encodeAttributes } from '../../src/node-ts-bus/attributes.ts'
import { describeFailure } from '../../src/node-ts-bus/failure.ts'
import { topicOf } from '../../src/node-ts-bus/topic-name.ts'
import { assertSharedName } from '../../src/schema/names.ts'
import { assertHeaders } from '../../src/schema/labels.ts'

/** As messages name themselves: any character, but no half ones. */
const messageName = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 10 })
  .filter((name) => name.isWellFormed())

describe('the topic of a message', () => {
  it('has a legal name, and one of its own', () => {
    fc.assert(
      fc.property(messageName, messageName, (one, other) => {
        expect(() => assertSharedName('topic', topicOf(one))).not.toThrow()
        expect(topicOf(one) === topicOf(other)).toBe(one === other)
      }),
    )
    expect(topicOf('@app/order-placed')).toBe('bus.:40app:2forder-placed')
    expect(topicOf(':40')).toBe('bus.:3a40')
    expect(topicOf('ü')).toBe('bus.:c3:bc')
  })
})

const values = fc.oneof(fc.string({ unit: 'binary' }), fc.boolean(), fc.integer())
const map = fc.dictionary(
  fc.string({ maxLength: 8 }).filter((name) => name !== '__proto__'),
  values,
  { noNullPrototype: true, maxKeys: 5 },
)

describe('the attributes of a message', () => {
  it('are the same after the way through headers, which are legal', () => {
    const attributes = fc.record(
      { correlationId: fc.uuid(), attributes: map, stickyAttributes: map },
      { requiredKeys: ['attributes', 'stickyAttributes'], noNullPrototype: true },
    )
    fc.assert(
      fc.property(attributes, (sent) => {
        const headers = encodeAttributes(sent)
        if (headers !== null) expect(() => assertHeaders(headers, 'headers')).not.toThrow()
        expect(decodeAttributes(headers)).toEqual(sent)
      }),
    )
    expect(encodeAttributes(undefined)).toBeNull()
  })

  it('are what headers say that no bus has set, but for the failure of an earlier life', () => {
    const headers = { trace: '1', failure: '{}', stickyAttributes: '[1]', correlationId: '' }
    expect(decodeAttributes(headers)).toEqual({
      correlationId: '',
      attributes: { trace: '1' },
      stickyAttributes: { stickyAttributes: '[1]' },
    })
  })
})

describe('an error in one line', () => {
  it.each([
    [{ rejections: [new TypeError('a'), { rejections: [new Error('b')] }] }, 'TypeError: a; Error: b'],
    [{ rejections: [] }, '[object Object]'],
    [undefined, 'undefined'],
    [null, 'null'],
    ['text', 'text'],
  ])('of %j is %s', (error, line) => {
    expect(describeFailure(error)).toBe(line)
  })
})

describe('the transport as a module', () => {
  it('loads nothing of the bus: it knows that package by its types alone', async () => {
    const { metafile } = await build({
      entryPoints: [fileURLToPath(new URL('../../src/node-ts-bus/transport.ts', import.meta.url))],
      bundle: true,
      write: false,
      metafile: true,
      platform: 'node',
      format: 'esm',
    })
    const inputs = Object.keys(metafile.inputs)
    expect(inputs.filter((path) => path.includes('src/node-ts-bus/')).length).toBeGreaterThan(5)
    expect(inputs.filter((path) => /@node-ts|reflect-metadata|drivers\//.test(path))).toEqual([])
  })
})
