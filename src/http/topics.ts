import type { Hono } from 'hono'
import { MillraceError } from '../errors/millrace-error.ts'
import { bindQueue, listBoundQueues, listTopics, publishToTopic, unbindQueue } from '../queues/topics.ts'
import { dataLimits, readBody } from './body.ts'
import type { AppOptions } from './context.ts'
import { parseMessages } from './message-body.ts'
import { pageLimit, queryOf, single } from './query.ts'
import { resource, type Handler } from './resource.ts'

const path = '/v1/topics/:topic'
const binding = '/v1/topics/:topic/queues/:queue'

/** `GET /v1/topics`, `GET /v1/topics/{topic}`, `POST …/messages`, `PUT` and `DELETE …/queues/{queue}`. */
export function topicRoutes(app: Hono, options: AppOptions): void {
  resource(app, '/v1/topics', { GET: list(options) })
  resource(app, path, { GET: show(options) })
  resource(app, `${path}/messages`, { POST: publish(options) })
  resource(app, binding, { PUT: bind(options), DELETE: unbind(options) })
}

function list({ db }: AppOptions): Handler<'/v1/topics'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    const limit = pageLimit(query)
    const found = await listTopics(db, { after: single(query, 'cursor'), limit: limit + 1 })
    const topics = found.slice(0, limit)
    return c.json({ topics, next: found.length > limit ? topics.at(-1)?.topic : null })
  }
}

/** A topic that nobody is bound to has no queues, and is no error. */
function show({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    const [topic, limit] = [c.req.param('topic'), pageLimit(query)]
    const found = await listBoundQueues(db, topic, { after: single(query, 'cursor'), limit: limit + 1 })
    const queues = found.slice(0, limit)
    return c.json({ topic, queues, next: found.length > limit ? queues.at(-1) : null })
  }
}

function publish(options: AppOptions): Handler<`${typeof path}/messages`> {
  const { maxDataBytes, maxBytes } = dataLimits(options)
  return async (c) => {
    queryOf(c.req.raw, [])
    const { text } = await readBody(c.req.raw, { maxBytes })
    const { messages } = parseMessages(text, maxDataBytes)
    const { queueIds, sent } = await publishToTopic(options.db, c.req.param('topic'), messages)
    return c.json({ queues: queueIds.length, sent }, 201)
  }
}

/** 201 when this bound it, 200 when it was bound already. */
function bind({ db }: AppOptions): Handler<typeof binding> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const names = c.req.param()
    return c.json(names, (await bindQueue(db, names)) ? 201 : 200)
  }
}

function unbind({ db }: AppOptions): Handler<typeof binding> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const { topic, queue } = c.req.param()
    if (!(await unbindQueue(db, { topic, queue })))
      throw new MillraceError('NOT_FOUND', `the queue "${queue}" is not bound to the topic "${topic}"`)
    return c.body(null, 204)
  }
}
