import { MillraceError } from '../errors/millrace-error.ts'
import { decodeBase64, encodeBase64 } from './base64.ts'

/** Encrypts what must not lie in the database in the clear. */
export interface Sealer {
  /**
   * Seals under the current key. `context` (the webhook's id) is bound in: a sealed text
   * that was moved to another webhook does not open.
   */
  seal(text: string, context: string): Promise<string>
  /**
   * Opens what any known key sealed in the same context.
   * @throws INVALID_SETTING when it was sealed under a key that is not known
   * @throws INTERNAL when it was changed, or belongs elsewhere
   */
  open(sealed: string, context: string): Promise<string>
  /** Whether it was sealed under a previous key, and should be sealed anew. */
  isStale(sealed: string): boolean
  /** The ids of all keys that open, as they stand in what is sealed. */
  readonly keyIds: readonly string[]
}

/** Master keys: 32 bytes in base64, or a passphrase of 16 characters at least. */
export interface SealerKeys {
  current: string
  /** Keys that still open what they sealed. Defaults to none. */
  previous?: readonly string[]
}

const encoder = new TextEncoder()

/** AES-256. */
const keyBytes = 32
/** Shorter ones are guessed: HKDF does not slow a guess down. */
const minPassphraseLength = 16
/** What GCM is made for. Source: NIST SP 800-38D, section 8.2. */
const ivBytes = 12
/** Tells master keys apart; 48 bits of a hash reveal nothing of the key. */
const keyIdBytes = 6

/** `v1.KEYID.IV.CIPHERTEXT`, the parts in base64. */
const sealedPattern = /^v1\.([^.]+)\.([^.]+)\.([^.]+)$/

/** Whether a stored text is sealed, or in the clear as without a master key. */
export function isSealed(text: string): boolean {
  return sealedPattern.test(text)
}

/**
 * Makes a sealer with AES-256-GCM under the current master key.
 * @throws INVALID_SETTING naming the variable of a key that is too short
 */
export async function createSealer({ current, previous = [] }: SealerKeys): Promise<Sealer> {
  const sealing = await importMasterKey(current, 'MILLRACE_ENCRYPTION_KEY')
  const former = previous.map((key) => importMasterKey(key, 'MILLRACE_PREVIOUS_ENCRYPTION_KEYS'))
  const keys = [sealing, ...(await Promise.all(former))]
  return {
    seal: (text, context) => sealWith(sealing, text, context),
    open: (sealed, context) => openWith(keys, sealed, context),
    keyIds: keys.map(({ id }) => id),
    isStale: (sealed) => sealedPattern.exec(sealed)?.[1] !== sealing.id,
  }
}

interface MasterKey {
  id: string
  key: CryptoKey
}

async function importMasterKey(text: string, setting: string): Promise<MasterKey> {
  const raw = decodeBase64(text)
  const bytes = raw?.length === keyBytes ? raw : await deriveKey(text, setting)
  const label = encoder.encode('millrace key id')
  const hash = await crypto.subtle.digest('SHA-256', Uint8Array.from([...label, ...bytes]))
  const key = await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt'])
  return { id: encodeBase64(new Uint8Array(hash, 0, keyIdBytes)), key }
}

async function deriveKey(passphrase: string, setting: string): Promise<Uint8Array<ArrayBuffer>> {
  if (passphrase.length < minPassphraseLength) {
    throw badKey(setting, `must be 32 bytes in base64, or at least ${minPassphraseLength} characters`)
  }
  const material = await crypto.subtle.importKey('raw', encoder.encode(passphrase), 'HKDF', false, [
    'deriveBits',
  ])
  const info = encoder.encode('millrace webhook secrets v1')
  // no salt: the same passphrase has to give the same key in every process
  const derivation = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return new Uint8Array(await crypto.subtle.deriveBits(derivation, material, keyBytes * 8))
}

async function sealWith({ id, key }: MasterKey, text: string, context: string): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(ivBytes))
  const sealed = await crypto.subtle.encrypt(algorithm(iv, context), key, encoder.encode(text))
  return `v1.${id}.${encodeBase64(iv)}.${encodeBase64(new Uint8Array(sealed))}`
}

async function openWith(keys: MasterKey[], sealed: string, context: string): Promise<string> {
  const [, id, ivText, cipherText] = sealedPattern.exec(sealed) ?? []
  const iv = decodeBase64(ivText ?? '')
  const bytes = decodeBase64(cipherText ?? '')
  if (id === undefined || iv?.length !== ivBytes || bytes === null) throw broken()
  const master = keys.find((candidate) => candidate.id === id)
  if (master === undefined)
    throw badKey('MILLRACE_ENCRYPTION_KEY', 'is not the key that this database was sealed under')
  const opened = await crypto.subtle.decrypt(algorithm(iv, context), master.key, bytes).catch((cause) => {
    throw broken(cause)
  })
  return new TextDecoder().decode(opened)
}

function algorithm(iv: Uint8Array<ArrayBuffer>, context: string): AesGcmParams {
  return { name: 'AES-GCM', iv, additionalData: encoder.encode(context) }
}

function badKey(setting: string, problem: string): MillraceError {
  return new MillraceError('INVALID_SETTING', `${setting} ${problem}`, { details: { setting } })
}

function broken(cause?: unknown): MillraceError {
  return new MillraceError('INTERNAL', 'a sealed secret cannot be opened: it was changed or moved', { cause })
}
