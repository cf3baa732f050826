/**
 * What an API key may do: `publish` puts events, messages and notifications in and takes locks, `read` takes them
 * out and keeps track (consumers' offsets, claims and settles), `manage` sets things up and throws things away.
 * None includes another.
 */
export const scopes = ['publish', 'read', 'manage'] as const

/** One of {@link scopes}. */
export type Scope = (typeof scopes)[number]

/** What a key lets its bearer do. */
export interface Grant {
  scopes: readonly Scope[]
  /** Only streams whose name begins like this, and nothing that is no stream; null: everything. */
  streamPrefix: string | null
}

/** An API key as it is shown: all but the key itself, of which only a hash is stored. */
export interface ApiKey extends Grant {
  /** `key_` and 20 hexadecimal digits. */
  id: string
  /** What it is for, in words for a person. */
  name: string
  /** ISO 8601, UTC. */
  createdAt: string
}

/** So many random bytes no one guesses. */
const secretBytes = 24

/** A new key: `mr_key_` and 48 hexadecimal digits. */
export function createSecret(): string {
  return `mr_key_${randomHex(secretBytes)}`
}

/** A new key's id. */
export function createKeyId(): string {
  return `key_${randomHex(10)}`
}

/** Whether a text has the form of a key; any other opens nothing, which needs no look into the database. */
export function isSecret(text: string): boolean {
  return /^mr_key_[0-9a-f]{48}$/.test(text)
}

function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}
