import { invalidInput } from '../errors/millrace-error.ts'

const encoder = new TextEncoder()

/**
 * Printable ASCII without the full stop. The signed text is `id.timestamp.body`: with
 * a full stop in the id, two different messages could share one signature.
 */
const idPattern = /^[\x21-\x2d\x2f-\x7e]{1,256}$/

/** Whether a message id can be signed, and sent as a header. */
export function isMessageId(id: string): boolean {
  return idPattern.test(id)
}

/**
 * What stands before the body in the signed content.
 * @throws INVALID_INPUT (fields `id`, `timestamp`)
 */
export function signedHead(id: string, timestampSeconds: number): string {
  if (!isMessageId(id)) throw invalidInput('id', 'must be 1 to 256 printable characters without a full stop')
  if (!Number.isSafeInteger(timestampSeconds) || timestampSeconds < 0) {
    throw invalidInput('timestamp', 'must be whole seconds since 1970')
  }
  return `${id}.${timestampSeconds}.`
}

/** Head and body as the bytes that are signed. */
export function signedBytes(head: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return encoder.encode(head + body)
  const headBytes = encoder.encode(head)
  const bytes = new Uint8Array(headBytes.length + body.length)
  bytes.set(headBytes)
  bytes.set(body, headBytes.length)
  return bytes
}
