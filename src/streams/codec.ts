import { describeError } from '../errors/describe-error.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { StoredEvent } from './event.ts'

/** How the data of a stream's events becomes JSON text, and back. */
export interface Codec {
  /** Returns one JSON document. */
  encode(data: unknown, type: string): string
  decode(text: string, type: string): unknown
}

/** JSON as it is: what JSON.stringify and JSON.parse do. */
export const jsonCodec: Codec = {
  encode(data) {
    const text = JSON.stringify(data)
    if (text === undefined) throw new TypeError('the value has no JSON form')
    return text
  },
  decode: (text) => JSON.parse(text),
}

/**
 * Encodes with a codec.
 *
 * @throws CODEC_FAILED with the codec's error as its cause
 */
export function encodeWith(codec: Codec, data: unknown, type: string): string {
  try {
    const text: unknown = codec.encode(data, type)
    if (typeof text !== 'string') throw new TypeError('encode returned no text')
    return text
  } catch (error) {
    throw codecError('encode', { type }, error)
  }
}

/**
 * Decodes the data of an event with a codec.
 *
 * @throws CODEC_FAILED with the codec's error as its cause; `details.offset` says where
 */
export function decodeWith(
  codec: Codec,
  { dataText, type, offset }: Pick<StoredEvent, 'dataText' | 'type' | 'offset'>,
): unknown {
  try {
    return codec.decode(dataText, type)
  } catch (error) {
    throw codecError('decode', { type, offset }, error)
  }
}

function codecError(
  what: string,
  details: { type: string } | { type: string; offset: number },
  cause: unknown,
): MillraceError {
  const message = `the codec could not ${what} an event of type "${details.type}": ${describeError(cause)}`
  return new MillraceError('CODEC_FAILED', message, { details, cause })
}
