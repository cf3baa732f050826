import type { Hono } from 'hono'
import * as v from 'valibot'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { configureStream } from '../streams/configure-stream.ts'
import { listStreams, streamInfo } from '../streams/stream-info.ts'
import { trimStream } from '../streams/trim-stream.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { queryOf, single, wholeNumber } from './query.ts'
import { resource, type Handler } from './resource.ts'

const path = '/v1/streams/:stream'

const change = v.strictObject({
  retention: v.strictObject({
    ageMs: v.optional(v.nullable(v.number())),
    count: v.optional(v.nullable(v.number())),
    keepUnread: v.optional(v.boolean()),
  }),
})

/** `GET /v1/streams`, `GET` and `PATCH /v1/streams/{stream}`, `DELETE /v1/streams/{stream}/events?through=`. */
export function streamRoutes(app: Hono, options: AppOptions): void {
  resource(app, '/v1/streams', { GET: list(options) })
  resource(app, path, { GET: show(options), PATCH: configure(options) })
}

function list({ db }: AppOptions): Handler<'/v1/streams'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit', 'prefix'])
    const [cursor, prefix, limit] = [
      single(query, 'cursor'),
      single(query, 'prefix'),
      wholeNumber(query, 'limit'),
    ]
    return c.json(await listStreams(db, { cursor, prefix, limit }))
  }
}

/** The stream's page also says who holds its horizon back: pid, age, application and query. */
function show({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const stream = c.req.param('stream')
    const info = await streamInfo(db, stream)
    if (info === null) throw new MillraceError('NOT_FOUND', `there is no stream "${stream}"`)
    return c.json(info)
  }
}

function configure({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const { retention } = parseShape(change, await readJsonObject(c.req.raw), 'body')
    return c.json({ retention: await configureStream(db, c.req.param('stream'), retention) })
  }
}

/** Deletes the events up to an offset. */
export function trim({ db }: AppOptions): Handler<'/v1/streams/:stream/events'> {
  return async (c) => {
    const through = wholeNumber(queryOf(c.req.raw, ['through']), 'through')
    if (through === undefined) throw invalidInput('through', 'is missing: the offset up to which to delete')
    return c.json({ deleted: await trimStream(db, c.req.param('stream'), through) })
  }
}
