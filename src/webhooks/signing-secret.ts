import { badSecret, generateSecret, parseSigningSecret, publicKeyOf } from './secrets.ts'
import { createSigner } from './sign.ts'
import type { WebhookInput } from './webhook-input.ts'

/** The secret of a new webhook. */
export interface SigningSecret {
  version: 'v1' | 'v1a'
  secret: string
  /** For v1a: what receivers verify with. */
  publicKey: string | null
}

/**
 * The secret that was supplied, once it has shown that it can sign, or else a new one.
 *
 * @throws INVALID_INPUT (field `secret`)
 */
export async function signingSecret(
  input: Pick<WebhookInput, 'signature' | 'secret'>,
): Promise<SigningSecret> {
  const { signature, secret } = input
  if (secret === undefined) {
    const version = signature ?? 'v1'
    return { version, ...(await generateSecret(version)) }
  }
  const { version } = parseSigningSecret(secret)
  if (signature !== undefined && signature !== version) {
    throw badSecret(`is one for ${version}, and the signature is to be ${signature}`)
  }
  await createSigner([secret])
  return { version, secret, publicKey: await publicKeyOf(secret) }
}
