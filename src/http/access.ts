import type { Context } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Grant, Scope } from '../keys/api-key.ts'

/** The methods that addresses have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const [publish, read, manage] = ['publish', 'read', 'manage'] as const

/** The scope that each route asks of an API key. What is not named here is for `manage`. */
export const routeScopes = {
  '/metrics': { GET: read },
  '/v1/streams': { GET: read },
  '/v1/streams/:stream': { GET: read, PATCH: manage },
  '/v1/streams/:stream/events': { POST: publish, GET: read, DELETE: manage },
  '/v1/streams/:stream/consumers/:consumer': { GET: read, PUT: read },
  '/v1/streams/:stream/consumers/:consumer/events': { GET: read },
  '/v1/streams/:stream/consumers/:consumer/seek': { POST: read },
  '/v1/channels/:channel': { POST: publish, GET: read },
  '/v1/queues': { GET: read },
  '/v1/queues/:queue': { GET: read, PATCH: manage },
  '/v1/queues/:queue/messages': { POST: publish },
  '/v1/queues/:queue/claim': { POST: read },
  '/v1/queues/:queue/ack': { POST: read },
  '/v1/queues/:queue/return': { POST: read },
  '/v1/queues/:queue/retry': { POST: read },
  '/v1/queues/:queue/extend': { POST: read },
  '/v1/queues/:queue/fail': { POST: read },
  '/v1/queues/:queue/dead': { GET: read, DELETE: manage },
  '/v1/queues/:queue/redrive': { POST: manage },
  '/v1/topics': { GET: read },
  '/v1/topics/:topic': { GET: read },
  '/v1/topics/:topic/messages': { POST: publish },
  '/v1/topics/:topic/queues/:queue': { PUT: manage, DELETE: manage },
  '/v1/locks/:name': { POST: publish, PUT: publish, DELETE: publish, GET: read },
  '/v1/schedules': { GET: read },
  '/v1/schedules/:name': { PUT: manage, GET: read, DELETE: manage },
} satisfies Record<string, Partial<Record<Method, Scope>>>

/** The scope that a route asks for. */
export function scopeOf(method: string, path: string): Scope {
  return (routeScopes as Record<string, Record<string, Scope | undefined>>)[path]?.[method] ?? manage
}

/** Where the middleware leaves what the request's key grants. */
export interface Granted {
  Variables: { grant?: Grant }
}

/**
 * Refuses a request whose key does not cover the route. Where no key is asked for, everyone may.
 *
 * @throws FORBIDDEN
 */
export function assertAccess(context: object, method: string, path: string): void {
  const c = context as Context<Granted>
  const grant = c.get('grant')
  if (grant === undefined) return
  const scope = scopeOf(method, path)
  if (!grant.scopes.includes(scope)) {
    throw new MillraceError('FORBIDDEN', `the API key lacks the scope "${scope}"`, { details: { scope } })
  }
  const { streamPrefix } = grant
  if (streamPrefix === null) return
  const reached = path === '/v1/streams' ? c.req.query('prefix') : c.req.param('stream')
  if (reached?.startsWith(streamPrefix) !== true) {
    throw new MillraceError(
      'FORBIDDEN',
      `the API key reaches only streams that begin with "${streamPrefix}"`,
      {
        details: { streamPrefix },
      },
    )
  }
}
