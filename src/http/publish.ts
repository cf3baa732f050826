import type { Hono } from 'hono'
import { publishEvents } from '../streams/publish-events.ts'
import { dataLimits, readBody } from './body.ts'
import { notifyHost, type AppOptions } from './context.ts'
import { parsePublishBody } from './publish-body.ts'
import { queryOf } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { readStream } from './read.ts'
import { trim } from './streams.ts'

/** `POST`, `GET` and `DELETE /v1/streams/{stream}/events`. */
export function eventRoutes(app: Hono, options: AppOptions): void {
  resource(app, '/v1/streams/:stream/events', {
    POST: publish(options),
    GET: readStream(options),
    DELETE: trim(options),
  })
}

function publish(options: AppOptions): Handler<'/v1/streams/:stream/events'> {
  const { maxDataBytes, maxBytes } = dataLimits(options)
  return async (c) => {
    queryOf(c.req.raw, [])
    const body = await readBody(c.req.raw, { maxBytes, ndjson: true })
    const { events, single } = parsePublishBody(body, maxDataBytes)
    const stream = c.req.param('stream')
    const idempotencyKey = c.req.header('idempotency-key')
    const published = await publishEvents(
      options.db,
      stream,
      events,
      idempotencyKey === undefined ? {} : { idempotencyKey },
    )
    if (published.replayed) c.header('idempotent-replayed', 'true')
    else
      notifyHost(options.ports, options.afterPublish, {
        streamId: published.streamId,
        stream,
        request: c.req.raw,
      })
    return c.json(single ? { offset: published.offsets[0] } : { offsets: published.offsets }, 201)
  }
}
