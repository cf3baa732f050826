import type { Hono } from 'hono'
import * as v from 'valibot'
import { parseShape } from '../json/shape.ts'
import { getOffset, saveOffset, seekOffset, type ConsumerId } from '../streams/consumer-offsets.ts'
import { readEvents } from '../streams/read-events.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { queryOf } from './query.ts'
import { pageRange, pageResponse } from './read.ts'
import { resource, type Handler } from './resource.ts'

const path = '/v1/streams/:stream/consumers/:consumer'

const offsetBody = v.strictObject({ offset: v.number() })

/** `GET` and `PUT /v1/streams/{stream}/consumers/{consumer}`, `GET …/events` and `POST …/seek`. */
export function consumerRoutes(app: Hono, options: AppOptions): void {
  resource(app, path, { GET: getConsumer(options), PUT: moveConsumer(options, saveOffset) })
  resource(app, `${path}/events`, { GET: readConsumer(options) })
  resource(app, `${path}/seek`, { POST: moveConsumer(options, seekOffset) })
}

/** The saved offset: 0 for one that never saved. */
function getConsumer({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    return c.json({ offset: await getOffset(db, consumerOf(c)) })
  }
}

/** Saves (never back, S3) or seeks (anywhere), and answers with the offset that stands. */
function moveConsumer({ db }: AppOptions, move: typeof saveOffset): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const { offset } = parseShape(offsetBody, await readJsonObject(c.req.raw), 'body')
    return c.json({ offset: await move(db, consumerOf(c), offset) })
  }
}

/** What comes after the saved offset; reading saves nothing. */
function readConsumer({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    const range = pageRange(queryOf(c.req.raw, ['limit', 'type']))
    const id = consumerOf(c)
    const after = await getOffset(db, id)
    return pageResponse(c, await readEvents(db, id.stream, { ...range, after }))
  }
}

function consumerOf(c: Parameters<Handler<typeof path>>[0]): ConsumerId {
  return { stream: c.req.param('stream'), consumer: c.req.param('consumer') }
}
