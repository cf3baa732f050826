import { bodyOf } from './data.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions, PageOptions } from './types.ts'

/** What an API key may do. */
export type Scope = 'publish' | 'read' | 'manage'

/** What an API key is made of. */
export interface NewKey {
  /** What it is for: 1 to 128 characters. */
  name: string
  scopes: readonly Scope[]
  /** Only streams whose name begins like this; null or absent: everything. */
  streamPrefix?: string | null
}

/** An API key as the server shows it. */
export interface ApiKey {
  id: string
  name: string
  scopes: Scope[]
  streamPrefix: string | null
  /** ISO 8601, UTC. */
  createdAt: string
}

/** The API keys of the server; for the root key, and keys that may manage. */
export interface KeysClient {
  /**
   * Makes a key, which is shown this once.
   *
   * @throws INVALID_INPUT, FORBIDDEN for scopes that the own key lacks
   */
  create(input: NewKey, options?: CallOptions): Promise<ApiKey & { key: string }>
  /** A page of them, by id. */
  list(options?: PageOptions): Promise<{ keys: ApiKey[]; next: string | null }>
  /**
   * Revokes a key: within 10 seconds it opens nothing anywhere.
   *
   * @throws NOT_FOUND
   */
  revoke(id: string, options?: CallOptions): Promise<void>
}

const collection = '/v1/keys'

export function createKeys(send: Send): KeysClient {
  return {
    async create(input, { signal } = {}) {
      return jsonOf(await send({ method: 'POST', path: collection, body: bodyOf(input), signal }))
    },
    async list({ limit, cursor, signal } = {}) {
      return jsonOf(await send({ path: collection, query: { limit, cursor }, signal }))
    },
    async revoke(id, { signal } = {}) {
      await send({ method: 'DELETE', path: `${collection}/${segment('key', id)}`, signal })
    },
  }
}
