import { MillraceError } from '../errors/millrace-error.ts'

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
    return codec.encode(data, type)
  } catch (error) {
    throw codecError('encode', type, error)
  }
}

/**
 * Decodes with a codec.
 *
 * @throws CODEC_FAILED with the codec's error as its cause
 */
export function decodeWith(codec: Codec, text: string, type: string): unknown {
  try {
    return codec.decode(text, type)
  } catch (error) {
    throw codecError('decode', type, error)
  }
}

function codecError(what: string, type: string, cause: unknown): MillraceError {
  const words = cause instanceof Error ? cause.message : String(cause)
  return new MillraceError(
    'CODEC_FAILED',
    `the codec could not ${what} an event of type "${type}": ${words}`,
    {
      details: { type },
      cause,
    },
  )
}
