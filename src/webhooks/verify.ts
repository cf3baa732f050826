import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { decodeBase64 } from './base64.ts'
import { badSecret, parseVerifyingSecret, type VerifyingKey } from './secrets.ts'
import { isMessageId, signedBytes } from './signed-content.ts'
import { readHeader, type HeadersLike } from './webhook-headers.ts'

/** Why a webhook was refused: `details.reason` of WEBHOOK_INVALID. */
export type WebhookRefusal =
  | 'missing_header'
  | 'bad_id'
  | 'bad_timestamp'
  | 'too_old'
  | 'too_new'
  | 'too_many_signatures'
  | 'no_match'

/** A received webhook, and what it is held against. */
export interface VerifyWebhookInput {
  /** `whsec_…` (v1) or `whpk_…` (v1a). Either this, or `secrets`. */
  secret?: string
  /** Several, during a rotation: one of them has to match. */
  secrets?: readonly string[]
  /** A `Headers`, or a plain object with names in any case. */
  headers: HeadersLike
  /** The body as it came: exact bytes, or the text they decode to. Never parsed and printed again. */
  body: string | Uint8Array
  /** How far the timestamp may lie from `now`, either way. Defaults to 300 s. */
  toleranceSeconds?: number
  /** Defaults to the current time. */
  now?: Date
}

/** What is known of a webhook that is authentic and fresh. */
export interface VerifiedWebhook {
  /** The same on every attempt: remember it, to drop what comes twice. */
  id: string
  /** When this attempt was signed. */
  timestamp: Date
}

const defaultToleranceSeconds = 300

/** A rotation needs two, and Millrace never makes more than 8. Each costs a pass over the body, so a sender may not ask for thousands. */
const maxSignatures = 16

/**
 * Verifies a received webhook (Standard Webhooks 1.0.0, v1 and v1a) in constant time.
 * Signatures of unknown versions are passed over.
 * @throws WEBHOOK_INVALID with `details.reason`, when it is not authentic or not fresh
 * @throws INVALID_INPUT (fields `secret`, `secrets`, `headers`, `body`, `now`, `toleranceSeconds`), when the call itself is wrong
 */
export async function verifyWebhook(input: VerifyWebhookInput): Promise<VerifiedWebhook> {
  const keys = parseSecrets(input)
  assertBody(input.body)
  assertHeaders(input.headers)
  const id = need(input.headers, 'webhook-id')
  const timestamp = need(input.headers, 'webhook-timestamp')
  const signatures = need(input.headers, 'webhook-signature').split(' ').filter(Boolean)
  if (!isMessageId(id)) throw refuse('bad_id', 'webhook-id is not a message id')
  const seconds = freshSeconds(timestamp, input)
  if (signatures.length > maxSignatures) {
    throw refuse('too_many_signatures', `webhook-signature holds more than ${maxSignatures} signatures`)
  }
  const content = signedBytes(`${id}.${timestamp}.`, input.body)
  if (!(await anyMatches(keys, signatures, content))) {
    throw refuse('no_match', 'no signature matches the secret and the body')
  }
  return { id, timestamp: new Date(seconds * 1000) }
}

/**
 * Verifies a received webhook, then parses its body as JSON.
 * @throws INVALID_JSON when an authentic body is not JSON; else as {@link verifyWebhook}
 */
export async function parseWebhook<Payload = unknown>(
  input: VerifyWebhookInput,
): Promise<VerifiedWebhook & { payload: Payload }> {
  const verified = await verifyWebhook(input)
  return { ...verified, payload: parseBody(input.body) as Payload }
}

function parseSecrets({ secret, secrets = [] }: VerifyWebhookInput): VerifyingKey[] {
  // an environment variable that is not set often ends here, whatever the types say
  if (!Array.isArray(secrets)) throw invalidInput('secrets', 'must be a list of texts')
  const all: unknown[] = [...(secret === undefined ? [] : [secret]), ...(secrets as unknown[])]
  if (all.length === 0) throw badSecret('is missing')
  if (!all.every((one) => typeof one === 'string')) throw badSecret('must be a text')
  return all.map(parseVerifyingSecret)
}

function assertBody(body: unknown): void {
  if (typeof body === 'string' || body instanceof Uint8Array) return
  throw invalidInput('body', 'must be the text or bytes as received, not a parsed value')
}

function assertHeaders(headers: unknown): void {
  if (typeof headers === 'object' && headers !== null && !Array.isArray(headers)) return
  throw invalidInput('headers', 'must be a Headers, or an object of names and values')
}

/** The times that the timestamp is held against, in seconds. */
function clockOf({ now = new Date(), toleranceSeconds = defaultToleranceSeconds }: VerifyWebhookInput): {
  nowSeconds: number
  tolerance: number
} {
  const nowMs = typeof now?.getTime === 'function' ? now.getTime() : Number.NaN
  if (Number.isNaN(nowMs)) throw invalidInput('now', 'must be a valid Date')
  if (typeof toleranceSeconds !== 'number' || !(toleranceSeconds >= 0)) {
    throw invalidInput('toleranceSeconds', 'must be a number of seconds, 0 or more')
  }
  return { nowSeconds: nowMs / 1000, tolerance: toleranceSeconds }
}

function need(headers: HeadersLike, name: string): string {
  const value = readHeader(headers, name)
  if (value === null || value === '') throw refuse('missing_header', `${name} is missing`)
  return value
}

/** The timestamp in seconds, when it lies within the tolerance. */
function freshSeconds(timestamp: string, input: VerifyWebhookInput): number {
  // digits only: parseInt would read 123 out of "123xyz"
  if (!/^\d+$/.test(timestamp)) throw refuse('bad_timestamp', 'webhook-timestamp is not a number of seconds')
  const seconds = Number(timestamp)
  const { nowSeconds, tolerance } = clockOf(input)
  if (!(nowSeconds - seconds <= tolerance))
    throw refuse('too_old', 'webhook-timestamp is too far in the past')
  if (!(seconds - nowSeconds <= tolerance)) {
    throw refuse('too_new', 'webhook-timestamp is too far in the future')
  }
  return seconds
}

/** Tries every pair of signature and secret, and does not stop at the first match. */
async function anyMatches(
  keys: VerifyingKey[],
  signatures: string[],
  content: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const imported = await Promise.all(keys.map(importKey))
  const checks = signatures.flatMap((entry) => {
    const comma = entry.indexOf(',')
    const version = entry.slice(0, Math.max(comma, 0))
    const signature = decodeBase64(entry.slice(comma + 1))
    if (signature === null) return []
    return imported
      .filter((candidate) => candidate.version === version)
      .map(({ algorithm, key }) => crypto.subtle.verify(algorithm, key, signature, content))
  })
  return (await Promise.all(checks)).includes(true)
}

interface ImportedKey {
  version: 'v1' | 'v1a'
  algorithm: string
  key: CryptoKey
}

async function importKey(parsed: VerifyingKey): Promise<ImportedKey> {
  if (parsed.version === 'v1') {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', parsed.key, algorithm, false, ['verify'])
    return { version: 'v1', algorithm: 'HMAC', key }
  }
  const key = await crypto.subtle.importKey('raw', parsed.publicKey, 'Ed25519', false, ['verify'])
  return { version: 'v1a', algorithm: 'Ed25519', key }
}

function parseBody(body: string | Uint8Array): unknown {
  try {
    return JSON.parse(
      typeof body === 'string' ? body : new TextDecoder('utf-8', { fatal: true }).decode(body),
    )
  } catch (cause) {
    throw new MillraceError('INVALID_JSON', 'the body of the webhook is not one JSON document', { cause })
  }
}

function refuse(reason: WebhookRefusal, message: string): MillraceError {
  return new MillraceError('WEBHOOK_INVALID', message, { details: { reason } })
}
