import { Hono, type MiddlewareHandler } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import { createGate } from './auth.ts'
import { channelRoutes } from './channels.ts'
import { consumerRoutes } from './consumers.ts'
import type { AppOptions } from './context.ts'
import { errorRoutes } from './errors.ts'
import { healthRoutes } from './health.ts'
import { keyRoutes } from './keys.ts'
import { metricsRoutes } from './metrics.ts'
import { asMillraceError, logFailure, problemResponse } from './problem.ts'
import { eventRoutes } from './publish.ts'
import { streamRoutes } from './streams.ts'
import { webhookActionRoutes } from './webhook-actions.ts'
import { webhookRoutes } from './webhooks.ts'

/**
 * The HTTP API. It runs wherever `fetch(request)` does: Node, Cloudflare Workers, Vercel, Deno.
 *
 * Everything under `/v1` needs the root key or an API key as a bearer token; every error is a problem document
 * with a stable `code`.
 *
 * @throws INVALID_SETTING when the root key is empty, or the body limit is no whole number above 0
 */
export function createApp(options: AppOptions): Hono {
  const { maxBodyBytes } = options
  if (maxBodyBytes !== undefined && !(Number.isSafeInteger(maxBodyBytes) && maxBodyBytes > 0)) {
    throw new MillraceError('INVALID_SETTING', 'maxBodyBytes must be a whole number above 0')
  }
  const app = new Hono()
  app.onError((error, c) => {
    const known = asMillraceError(error)
    if (known.status >= 500) logFailure(options.ports.log, c.req.raw, known)
    return problemResponse(known)
  })
  app.notFound(() => problemResponse(new MillraceError('NOT_FOUND', 'there is nothing at this address')))
  app.use(plainHeaders)
  const gate = createGate(options)
  app.use('/v1/*', gate.middleware as MiddlewareHandler, readablePath)
  app.use('/metrics', gate.middleware as MiddlewareHandler)
  healthRoutes(app, options)
  metricsRoutes(app, options)
  errorRoutes(app)
  keyRoutes(app, options, gate)
  streamRoutes(app, options)
  eventRoutes(app, options)
  consumerRoutes(app, options)
  channelRoutes(app, options)
  options.workRoutes?.(app, options)
  options.docRoutes?.(app)
  webhookRoutes(app, options)
  webhookActionRoutes(app, options)
  return app
}

/** Answers are for programs, at the moment of asking: nothing may keep them or guess at their type. */
const plainHeaders: MiddlewareHandler = async (c, next) => {
  await next()
  c.res.headers.set('x-content-type-options', 'nosniff')
  c.res.headers.set('cache-control', 'no-store')
}

/** A path that is not valid percent-encoded UTF-8 would reach the handlers undecoded, as another name. */
const readablePath: MiddlewareHandler = (c, next) => {
  try {
    decodeURIComponent(new URL(c.req.url).pathname)
  } catch {
    throw new MillraceError('BAD_REQUEST', 'the path is not valid percent-encoded UTF-8')
  }
  return next()
}
