import { joinBytes } from '../json/join-bytes.ts'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseJson } from '../json/scan.ts'
import { objectSlices } from '../json/slices.ts'

/** The limit for everything that is not an event: settings and offsets are short. */
export const smallBodyBytes = 64 * 1024

/** 1 MiB: far above a sensible event, far below what a database or a receiver chokes on. */
const defaultMaxDataBytes = 1_048_576
/** Room for the type, key and headers around the data. */
const envelopeBytes = 64 * 1024

/** How much the data of one event or message may have, and a whole request with such. */
export function dataLimits(options: { maxBodyBytes?: number }): { maxDataBytes: number; maxBytes: number } {
  const maxDataBytes = options.maxBodyBytes ?? defaultMaxDataBytes
  return { maxDataBytes, maxBytes: maxDataBytes + envelopeBytes }
}

/** What {@link readBody} returns. */
export interface BodyText {
  mediaType: 'application/json' | 'application/x-ndjson'
  text: string
}

/**
 * Reads a request's body as text, counting while it streams, so that a body over the limit is refused
 * before it is held in memory.
 *
 * @param options.maxBytes the most the whole body may have
 * @param options.ndjson whether `application/x-ndjson` is taken beside `application/json`
 * @throws BODY_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST when the bytes are not UTF-8
 */
export async function readBody(
  request: Request,
  options: { maxBytes: number; ndjson?: boolean },
): Promise<BodyText> {
  const mediaType = mediaTypeOf(request, options.ndjson ?? false)
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > options.maxBytes) {
    if (request.body !== null) await discard(request.body.getReader())
    throw tooLarge('body', options.maxBytes)
  }
  const bytes = await collect(request.body, options.maxBytes)
  try {
    return { mediaType, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    throw new MillraceError('BAD_REQUEST', 'the body is not valid UTF-8', { details: { field: 'body' } })
  }
}

/**
 * Reads a body that is one JSON object, none of its members twice.
 *
 * @throws as {@link readBody}; INVALID_JSON, JSON_TOO_DEEP, INVALID_INPUT
 */
export async function readJsonObject(request: Request): Promise<object> {
  return toObject((await readBody(request, { maxBytes: smallBodyBytes })).text)
}

function toObject(text: string): object {
  const value = parseJson(text, 'body')
  if (!isObject(value)) throw invalidInput('body', 'must be a JSON object')
  objectSlices(text, 'body')
  return value
}

/**
 * As {@link readJsonObject}, where a request may also come without a body: that is `{}`.
 *
 * @throws as readJsonObject
 */
export async function readOptionalObject(request: Request): Promise<object> {
  if (request.body === null || request.headers.get('content-length') === '0') return {}
  // Node gives every POST a stream, and a request without a body need not say how long it is
  const { text } = await readBody(request, { maxBytes: smallBodyBytes })
  return text === '' ? {} : toObject(text)
}

/** Whether a parsed JSON value is an object, so neither null nor an array. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error for a part of the request that is over its limit. */
export function tooLarge(field: string, limitBytes: number): MillraceError {
  return new MillraceError('BODY_TOO_LARGE', `${field} is over the limit of ${limitBytes} bytes`, {
    details: { field, limitBytes },
  })
}

/**
 * Whether a text is longer than so many bytes of UTF-8. A UTF-16 unit is one to three bytes, so most
 * texts need no encoding to be judged.
 */
export function isLongerThan(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true
  if (text.length * 3 <= maxBytes) return false
  return new TextEncoder().encode(text).byteLength > maxBytes
}

/** No Content-Type counts as JSON. Anything that is not UTF-8, or is compressed, is refused. */
function mediaTypeOf(request: Request, ndjson: boolean): BodyText['mediaType'] {
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity') {
    throw unsupported('content-encoding', 'a compressed body is not taken')
  }
  const [type = '', ...parameters] = (request.headers.get('content-type') ?? 'application/json')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    throw unsupported('content-type', 'the charset must be utf-8')
  }
  if (type === 'application/json' || (ndjson && type === 'application/x-ndjson')) return type
  const taken = ndjson ? 'application/json or application/x-ndjson' : 'application/json'
  throw unsupported('content-type', `the Content-Type must be ${taken}`)
}

function unsupported(field: string, problem: string): MillraceError {
  return new MillraceError('UNSUPPORTED_MEDIA_TYPE', problem, { details: { field } })
}

async function collect(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await readChunk(reader)
    if (done) return joinBytes(chunks, size)
    size += value.byteLength
    if (size > maxBytes) {
      await discard(reader)
      throw tooLarge('body', maxBytes)
    }
    chunks.push(value)
  }
}

/** What a sender may still have on its way when it is refused. */
const discardBytes = 4 * 1024 * 1024

/**
 * Lets a body that is refused arrive, within bounds: an answer to somebody who is still writing gets lost in
 * the reset of the connection.
 */
async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    for (let size = 0; size < discardBytes;) {
      const { done, value } = await reader.read()
      if (done) return
      size += value.byteLength
    }
    await reader.cancel()
  } catch {
    // that it broke off, or cannot be stopped, is no fault of the request's
  }
}

/** A body that breaks off is the sender's failure, not ours. */
async function readChunk(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (error) {
    throw new MillraceError('BAD_REQUEST', 'the body broke off', {
      details: { field: 'body' },
      cause: error,
    })
  }
}
