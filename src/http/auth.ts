import type { MiddlewareHandler } from 'hono'
import { sha256Hex } from '../db/sha256-hex.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { isSecret, scopes, type Grant } from '../keys/api-key.ts'
import { findGrant } from '../keys/find-grant.ts'
import type { Granted } from './access.ts'
import type { AppOptions } from './context.ts'
import { problemResponse } from './problem.ts'

/** So long a key that was revoked elsewhere may still open this process; within it a known key costs no query. */
const knownMs = 10_000
/** Bounds the memory; whoever has more keys in use asks for some of them again. */
const maxKnown = 1000

const everything: Grant = { scopes, streamPrefix: null }

/** Who gets in. */
export interface Gate {
  /**
   * Lets a request pass that brings the root key or an API key as `Authorization: Bearer KEY`, and notes what the
   * key grants; all others get a 401.
   */
  middleware: MiddlewareHandler<Granted>
  /** A key was revoked here: from now on it opens nothing. */
  forget(): void
}

/**
 * Makes the gate of an app.
 *
 * @throws INVALID_SETTING when the root key is empty: it would let everyone in
 */
export function createGate({ db, rootKey, ports }: Pick<AppOptions, 'db' | 'rootKey' | 'ports'>): Gate {
  if (rootKey.trim() === '') throw new MillraceError('INVALID_SETTING', 'MILLRACE_ROOT_KEY is empty')
  const known = new Map<string, { grant: Grant; until: number }>()
  let rootHash: string | undefined

  async function grantOf(key: string): Promise<Grant | null> {
    const hash = await sha256Hex(key)
    rootHash ??= await sha256Hex(rootKey)
    if (sameText(hash, rootHash)) return everything
    if (!isSecret(key)) return null
    const now = ports.clock.now()
    const found = known.get(hash)
    if (found !== undefined && found.until > now) return found.grant
    const grant = await findGrant(db, hash)
    known.delete(hash)
    if (known.size >= maxKnown) known.clear()
    if (grant !== null) known.set(hash, { grant, until: now + knownMs })
    return grant
  }

  return {
    async middleware(c, next) {
      const key = bearerToken(c.req.header('authorization'))
      if (key === undefined) return unauthorized('send the API key as "Authorization: Bearer KEY"', '')
      const grant = await grantOf(key)
      if (grant === null) return unauthorized('the API key is not valid', ', error="invalid_token"')
      c.set('grant', grant)
      return next()
    },
    forget: () => known.clear(),
  }
}

/** Source: RFC 6750, section 2.1; the scheme's case does not matter. */
function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1]
}

function unauthorized(problem: string, parameters: string): Response {
  return problemResponse(new MillraceError('UNAUTHORIZED', problem), {
    'www-authenticate': `Bearer realm="millrace"${parameters}`,
  })
}

/** Hashes of equal length, compared without an early exit: the time tells nothing about the key. */
function sameText(left: string, right: string): boolean {
  let difference = 0
  for (let at = 0; at < left.length; at++) difference |= left.charCodeAt(at) ^ right.charCodeAt(at)
  return difference === 0
}
