import { Hono, type MiddlewareHandler } from 'hono'
import type { Db } from '../db/port.ts'
import { createDoorbell } from '../doorbell/answer-ring.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { createGate } from '../http/auth.ts'
import { healthRoutes } from '../http/health.ts'
import { metricsRoutes } from '../http/metrics.ts'
import { asMillraceError, logFailure, problemResponse } from '../http/problem.ts'
import { resource } from '../http/resource.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import type { Metrics } from './metrics.ts'
import { readiness } from './readiness.ts'

/** What {@link createForwarderApp} takes. */
export interface ForwarderAppSetup {
  db: Db
  settings: Pick<Settings, 'rootKey' | 'doorbell'>
  ports: Ports
  forwarder: Forwarder
  metrics: Metrics
}

/**
 * What a forwarder answers over HTTP: `/healthz` and `/readyz` to everyone, `/metrics` where it was
 * given the root key, to that and to API keys that may read, and `/doorbell` to who signs with the secret, where there is one.
 */
export function createForwarderApp(setup: ForwarderAppSetup): { app: Hono; close(): void } {
  const { db, settings, ports, forwarder, metrics } = setup
  const app = new Hono()
  app.onError((error, c) => {
    const known = asMillraceError(error)
    if (known.status >= 500) logFailure(ports.log, c.req.raw, known)
    return problemResponse(known)
  })
  app.notFound(() => problemResponse(new MillraceError('NOT_FOUND', 'there is nothing at this address')))
  healthRoutes(app, { db, ports, ready: () => readiness(db, forwarder) })
  if (settings.rootKey !== null) {
    const gate = createGate({ db, rootKey: settings.rootKey, ports })
    app.use('/metrics', gate.middleware as MiddlewareHandler)
    metricsRoutes(app, { metrics: () => metrics.text() })
  }
  const close = addDoorbell(app, setup)
  return { app, close }
}

function addDoorbell(app: Hono, { settings, ports, forwarder }: ForwarderAppSetup): () => void {
  const { secret } = settings.doorbell
  if (secret === null) return () => {}
  const doorbell = createDoorbell({
    secret,
    clock: ports.clock,
    mode: () => forwarder.mode,
    onRing(streamIds) {
      if (streamIds === 'all') forwarder.ring('all')
      else for (const id of streamIds) forwarder.ring(`s${id}`)
    },
  })
  resource(app, '/doorbell', { POST: (c) => doorbell.answer(c.req.raw) })
  return doorbell.close
}
