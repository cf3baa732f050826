import { encodeBase64 } from './base64.ts'
import { importSeed, publicKeyOfSeed, sameBytes } from './ed25519.ts'
import { badSecret, parseSigningSecret, type SigningKey } from './secrets.ts'
import { signedBytes, signedHead } from './signed-content.ts'

/** Signs messages with keys that were imported once. */
export interface Signer {
  /**
   * The whole value of the `webhook-signature` header: one signature per secret,
   * separated by spaces, in the order of the secrets. Signs the body's exact bytes (a
   * string as UTF-8).
   * @throws INVALID_INPUT (fields `id`, `timestamp`)
   */
  sign(id: string, timestampSeconds: number, body: string | Uint8Array): string | Promise<string>
}

/** Makes a signer; {@link createSigner} here, `createNodeSigner` in node-sign.ts. */
export type CreateSigner = (secrets: readonly string[]) => Signer | Promise<Signer>

/**
 * A Standard Webhooks signer on WebCrypto, for every runtime. All secrets sign, so
 * during a rotation pass the current one first and the expiring one after it.
 * Source: Standard Webhooks 1.0.0, "Signature scheme".
 * @throws INVALID_INPUT (field `secret`) when there is none, or one is not usable
 */
export async function createSigner(secrets: readonly string[]): Promise<Signer> {
  const keys = await Promise.all(parseSigningSecrets(secrets).map(importKey))
  return {
    async sign(id, timestampSeconds, body) {
      const content = signedBytes(signedHead(id, timestampSeconds), body)
      const signatures = await Promise.all(keys.map((key) => signWith(key, content)))
      return signatures.join(' ')
    },
  }
}

/** Parses the secrets of one signer, of which there must be one at least. */
export function parseSigningSecrets(secrets: readonly string[]): SigningKey[] {
  if (secrets.length === 0) throw badSecret('is missing')
  return secrets.map(parseSigningSecret)
}

/** Refuses a `whsk_` key whose second half is not the public key of the first. */
export function assertPair(expected: Uint8Array, given: Uint8Array | null): void {
  if (given !== null && !sameBytes(expected, given)) {
    throw badSecret('holds a public key that does not belong to its private key')
  }
}

interface ImportedKey {
  version: 'v1' | 'v1a'
  algorithm: string
  key: CryptoKey
}

async function importKey(parsed: SigningKey): Promise<ImportedKey> {
  if (parsed.version === 'v1') {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', parsed.key, algorithm, false, ['sign'])
    return { version: 'v1', algorithm: 'HMAC', key }
  }
  assertPair(await publicKeyOfSeed(parsed.seed), parsed.publicKey)
  return { version: 'v1a', algorithm: 'Ed25519', key: await importSeed(parsed.seed) }
}

async function signWith(
  { version, algorithm, key }: ImportedKey,
  content: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const signature = await crypto.subtle.sign(algorithm, key, content)
  return `${version},${encodeBase64(new Uint8Array(signature))}`
}
