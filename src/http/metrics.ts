import type { Hono } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import type { AppOptions } from './context.ts'
import { resource } from './resource.ts'

/** `GET /metrics`, with the key: how busy a company is can be read from it. */
export function metricsRoutes(app: Hono, options: Pick<AppOptions, 'metrics'>): void {
  resource(app, '/metrics', {
    async GET(c) {
      if (options.metrics === undefined) throw new MillraceError('NOT_FOUND', 'this host keeps no metrics')
      return c.body(await options.metrics(), 200, {
        'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      })
    },
  })
}
