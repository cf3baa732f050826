import { bodyOf } from './data.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions } from './types.ts'

/** A lock as held. */
export interface HeldLock {
  name: string
  /** Proves that it is yours. */
  token: string
  /** Higher than that of every holder before. */
  fence: number
  /** ISO 8601: when it ends unless renewed, by the database's clock. */
  until: string
}

/** A lock as others see it. */
export interface LockState {
  name: string
  held: boolean
  fence: number | null
  until: string | null
}

/** A lock at the server. */
export interface LockClient {
  readonly name: string
  /**
   * Takes it for `ttlMs` (100 to 86,400,000), waiting at most `waitMs` (30,000) for it.
   *
   * @throws CONFLICT when another holds it
   */
  acquire(options: { ttlMs: number; waitMs?: number } & CallOptions): Promise<HeldLock>
  /**
   * Holds it for `ttlMs` from now on. Returns until when.
   *
   * @throws LEASE_LOST
   */
  renew(token: string, options: { ttlMs: number } & CallOptions): Promise<string>
  /** @throws LEASE_LOST */
  release(token: string, options?: CallOptions): Promise<void>
  state(options?: CallOptions): Promise<LockState>
}

/** @throws INVALID_NAME for names that a URL cannot carry */
export function createLock(send: Send, name: string): LockClient {
  const path = `/v1/locks/${segment('lock', name)}`
  return {
    name,
    async acquire({ ttlMs, waitMs, signal }) {
      const body = bodyOf({ ttlMs, waitMs })
      return jsonOf(await send({ method: 'POST', path, body, signal, waitMs: waitMs ?? 0 }))
    },
    async renew(token, { ttlMs, signal }) {
      const body = bodyOf({ token, ttlMs })
      return jsonOf<{ until: string }>(await send({ method: 'PUT', path, body, signal })).until
    },
    async release(token, { signal } = {}) {
      await send({ method: 'DELETE', path, body: bodyOf({ token }), signal })
    },
    state: async ({ signal } = {}) => jsonOf(await send({ path, signal })),
  }
}
