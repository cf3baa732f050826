import { decodeBase64 } from './base64.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * A PKCS #8 document for an ed25519 seed is this fixed head and the seed. WebCrypto
 * imports no bare private key, and Node's takes a JWK only with its public half.
 * Source: RFC 8410, section 7.
 */
const pkcs8Head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]

/** The PKCS #8 (DER) form of a 32-byte seed. */
export function pkcs8OfSeed(seed: Uint8Array): Bytes {
  return Uint8Array.from([...pkcs8Head, ...seed])
}

/** Imports a seed for signing. */
export async function importSeed(seed: Bytes, extractable = false): Promise<CryptoKey> {
  return crypto.subtle.importKey('pkcs8', pkcs8OfSeed(seed), 'Ed25519', extractable, ['sign'])
}

/** The 32 bytes of the public key that belongs to a seed. */
export async function publicKeyOfSeed(seed: Bytes): Promise<Bytes> {
  const { x } = await crypto.subtle.exportKey('jwk', await importSeed(seed, true))
  const bytes = x === undefined ? null : decodeBase64Url(x)
  if (bytes === null) throw new Error('this runtime exports ed25519 keys without their public half')
  return bytes
}

/** Whether two public keys are the same bytes. Not secret, so not in constant time. */
export function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index])
}

/** The bytes of unpadded base64url, as JSON Web Keys carry them. */
export function decodeBase64Url(text: string): Bytes | null {
  const padding = '='.repeat((4 - (text.length % 4)) % 4)
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/') + padding)
}
