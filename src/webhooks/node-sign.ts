import { createHmac, createPrivateKey, createPublicKey, createSecretKey, sign } from 'node:crypto'
import { decodeBase64Url, pkcs8OfSeed } from './ed25519.ts'
import type { SigningKey } from './secrets.ts'
import { assertPair, parseSigningSecrets, type Signer } from './sign.ts'
import { signedBytes, signedHead } from './signed-content.ts'

type Sign = (head: string, body: string | Uint8Array) => string

/**
 * The signer of the Node sender, byte for byte the same as WebCrypto's. It signs in
 * the calling thread: a trip to the thread pool costs more than hashing a small body.
 * @throws INVALID_INPUT (field `secret`) when there is none, or one is not usable
 */
export function createNodeSigner(secrets: readonly string[]): Signer {
  const signs = parseSigningSecrets(secrets).map(toSign)
  return {
    sign(id, timestampSeconds, body) {
      const head = signedHead(id, timestampSeconds)
      return signs.map((signOne) => signOne(head, body)).join(' ')
    },
  }
}

function toSign(parsed: SigningKey): Sign {
  return parsed.version === 'v1' ? hmacSign(parsed.key) : ed25519Sign(parsed)
}

function hmacSign(bytes: Uint8Array): Sign {
  const key = createSecretKey(bytes)
  return (head, body) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`
}

function ed25519Sign(parsed: SigningKey & { version: 'v1a' }): Sign {
  const der = Buffer.from(pkcs8OfSeed(parsed.seed))
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  assertPair(decodeBase64Url(String(x)) ?? new Uint8Array(), parsed.publicKey)
  return (head, body) => `v1a,${sign(null, signedBytes(head, body), key).toString('base64')}`
}
