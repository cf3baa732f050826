import { MillraceError } from '../errors/millrace-error.ts'
import { isSealed, type Sealer } from './seal.ts'

/** A secret as it is stored: sealed for its webhook, or in the clear where no master key is set. */
export function sealSecret(sealer: Sealer | null, secret: string, webhookId: string): Promise<string> {
  return sealer === null ? Promise.resolve(secret) : sealer.seal(secret, webhookId)
}

/**
 * A stored secret in the clear.
 *
 * @throws INVALID_SETTING when it was sealed under a master key that is not known here
 */
export function openSecret(sealer: Sealer | null, stored: string, webhookId: string): Promise<string> {
  if (!isSealed(stored)) return Promise.resolve(stored)
  if (sealer !== null) return sealer.open(stored, webhookId)
  throw new MillraceError('INVALID_SETTING', 'a secret is sealed, and MILLRACE_ENCRYPTION_KEY is not set')
}
