import type { MiddlewareHandler } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import { problemResponse } from './problem.ts'

/**
 * Lets a request pass that brings the root key as `Authorization: Bearer KEY`; all others get a 401.
 *
 * @throws INVALID_SETTING when the root key is empty: it would let everyone in
 */
export function requireKey(rootKey: string): MiddlewareHandler {
  if (rootKey.trim() === '') throw new MillraceError('INVALID_SETTING', 'MILLRACE_ROOT_KEY is empty')
  let expected: Uint8Array | undefined
  return async (c, next) => {
    const key = bearerToken(c.req.header('authorization'))
    if (key === undefined) return unauthorized('send the API key as "Authorization: Bearer KEY"', '')
    expected ??= await hash(rootKey)
    if (!sameBytes(await hash(key), expected)) {
      return unauthorized('the API key is not valid', ', error="invalid_token"')
    }
    return next()
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

async function hash(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
}

/** Hashes of equal length, compared without an early exit: the time tells nothing about the key. */
function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  let difference = 0
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0)
  return difference === 0
}
