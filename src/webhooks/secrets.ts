import { invalidInput, type MillraceError } from '../errors/millrace-error.ts'
import { decodeBase64, encodeBase64 } from './base64.ts'
import { publicKeyOfSeed } from './ed25519.ts'

/** The signature schemes of Standard Webhooks: HMAC-SHA256, and ed25519. */
export type SignatureVersion = 'v1' | 'v1a'

type Bytes = Uint8Array<ArrayBuffer>

/** What signs: a shared key, or the private half of an ed25519 pair. */
export type SigningKey =
  | { version: 'v1'; key: Bytes }
  /** `publicKey` is null where only the 32-byte seed was given. */
  | { version: 'v1a'; seed: Bytes; publicKey: Bytes | null }

/** What verifies: the same shared key, or the public half. */
export type VerifyingKey = { version: 'v1'; key: Bytes } | { version: 'v1a'; publicKey: Bytes }

/** A new secret as its owner is shown it. */
export interface GeneratedSecret {
  /** `whsec_…` for v1, `whsk_…` for v1a. Millrace keeps it sealed. */
  secret: string
  /** `whpk_…`, which a receiver of v1a verifies with; null for v1, where the secret itself does. */
  publicKey: string | null
}

const prefixes = { shared: 'whsec_', signing: 'whsk_', verifying: 'whpk_' } as const

// Standard Webhooks 1.0.0, "Signature scheme": between 24 bytes (192 bits) and 64 bytes (512 bits)
const sharedBytes = { min: 24, max: 64 }
/** As long as SHA-256's output: more adds nothing, less would be the weakest part. */
const generatedBytes = 32
const ed25519Bytes = 32

/**
 * Reads a secret that signs: `whsec_` and 24 to 64 bytes, or `whsk_` and a 32-byte
 * seed, alone or followed by its 32-byte public key. All in canonical base64.
 * @throws INVALID_INPUT (field `secret`); the secret itself is never in the message.
 */
export function parseSigningSecret(secret: string): SigningKey {
  if (secret.startsWith(prefixes.signing)) {
    const bytes = decodeAfter(prefixes.signing, secret)
    if (bytes.length !== ed25519Bytes && bytes.length !== 2 * ed25519Bytes) {
      throw badSecret('must carry 32 or 64 bytes after whsk_')
    }
    const publicKey = bytes.length === ed25519Bytes ? null : bytes.slice(ed25519Bytes)
    return { version: 'v1a', seed: bytes.slice(0, ed25519Bytes), publicKey }
  }
  if (secret.startsWith(prefixes.verifying)) {
    throw badSecret('is a public key (whpk_): only the whsk_ key can sign')
  }
  return parseShared(secret, 'whsec_ or whsk_')
}

/**
 * Reads what a receiver verifies with: `whsec_` and 24 to 64 bytes, or `whpk_` and 32.
 * @throws INVALID_INPUT (field `secret`); the secret itself is never in the message.
 */
export function parseVerifyingSecret(secret: string): VerifyingKey {
  if (secret.startsWith(prefixes.verifying)) {
    const publicKey = decodeAfter(prefixes.verifying, secret)
    if (publicKey.length !== ed25519Bytes) throw badSecret('must carry 32 bytes after whpk_')
    return { version: 'v1a', publicKey }
  }
  if (secret.startsWith(prefixes.signing)) {
    throw badSecret('is a private key (whsk_): verify with its whpk_ key')
  }
  return parseShared(secret, 'whsec_ or whpk_')
}

/** Makes a new random secret: 32 bytes for v1, an ed25519 pair for v1a. */
export async function generateSecret(version: SignatureVersion): Promise<GeneratedSecret> {
  const random = crypto.getRandomValues(new Uint8Array(generatedBytes))
  if (version === 'v1') return { secret: prefixes.shared + encodeBase64(random), publicKey: null }
  const publicKey = await publicKeyOfSeed(random)
  const pair = new Uint8Array(2 * ed25519Bytes)
  pair.set(random)
  pair.set(publicKey, ed25519Bytes)
  return {
    secret: prefixes.signing + encodeBase64(pair),
    publicKey: prefixes.verifying + encodeBase64(publicKey),
  }
}

/**
 * What a receiver needs for a secret: its `whpk_` key for v1a, null for v1 (the secret itself).
 * @throws INVALID_INPUT (field `secret`)
 */
export async function publicKeyOf(secret: string): Promise<string | null> {
  const key = parseSigningSecret(secret)
  if (key.version === 'v1') return null
  return prefixes.verifying + encodeBase64(await publicKeyOfSeed(key.seed))
}

/** The one error for secrets that are not usable. */
export function badSecret(problem: string): MillraceError {
  return invalidInput('secret', problem)
}

function parseShared(secret: string, expected: string): { version: 'v1'; key: Bytes } {
  if (!secret.startsWith(prefixes.shared)) throw badSecret(`must start with ${expected}`)
  const key = decodeAfter(prefixes.shared, secret)
  if (key.length < sharedBytes.min || key.length > sharedBytes.max) {
    throw badSecret(`must carry ${sharedBytes.min} to ${sharedBytes.max} bytes after whsec_`)
  }
  return { version: 'v1', key }
}

function decodeAfter(prefix: string, secret: string): Bytes {
  const bytes = decodeBase64(secret.slice(prefix.length))
  if (bytes === null) throw badSecret(`must be base64 with padding after ${prefix}`)
  return bytes
}
