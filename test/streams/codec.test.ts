import { describe, expect, it } from 'vitest'
import { decodeWith, encodeWith } from '../../src/streams/codec.ts'
import { awkward } from '../support/awkward-throws.ts'

describe('a codec', () => {
  it.each(awkward)('that throws %s fails with CODEC_FAILED', (_, thrown) => {
    const fails = (): never => {
      throw thrown
    }
    const codec = { encode: fails, decode: fails }
    const failed = expect.objectContaining({ code: 'CODEC_FAILED' })
    expect(() => encodeWith(codec, 1, 't')).toThrow(failed)
    expect(() => decodeWith(codec, { dataText: '1', type: 't', offset: 1 })).toThrow(failed)
  })
})
