import type { Hono } from 'hono'
import * as v from 'valibot'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { listDeadLetters, purgeDeadLetters, redriveDeadLetters } from '../queues/dead-letters.ts'
import { configureQueue } from '../queues/queue-settings.ts'
import { getQueueStats, listQueues } from '../queues/queue-stats.ts'
import { readJsonObject, readOptionalObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { list, pageLimit, queryOf, single, wholeNumber } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { jsonText, withData } from './verbatim.ts'

const path = '/v1/queues/:queue'

const change = v.strictObject({ retainFinishedMs: v.nullable(v.number()) })
const choice = v.strictObject({ ids: v.optional(v.array(v.number())), limit: v.optional(v.number()) })

/** `GET /v1/queues`, `GET` and `PATCH /v1/queues/{queue}`, `GET` and `DELETE …/dead`, `POST …/redrive`. */
export function queueRoutes(app: Hono, options: AppOptions): void {
  resource(app, '/v1/queues', { GET: listAll(options) })
  resource(app, path, { GET: show(options), PATCH: configure(options) })
  resource(app, `${path}/dead`, { GET: dead(options), DELETE: purge(options) })
  resource(app, `${path}/redrive`, { POST: redrive(options) })
}

function listAll({ db }: AppOptions): Handler<'/v1/queues'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    const limit = pageLimit(query)
    const found = await listQueues(db, { after: single(query, 'cursor'), limit: limit + 1 })
    const queues = found.slice(0, limit)
    return c.json({ queues, next: found.length > limit ? queues.at(-1)?.name : null })
  }
}

function show({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const queue = c.req.param('queue')
    const stats = await getQueueStats(db, queue)
    if (stats === undefined) throw new MillraceError('NOT_FOUND', `there is no queue "${queue}"`)
    return c.json(stats)
  }
}

/** Makes the queue if need be. */
function configure({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const settings = parseShape(change, await readJsonObject(c.req.raw), 'body')
    await configureQueue(db, c.req.param('queue'), settings)
    return c.json(settings)
  }
}

function dead({ db }: AppOptions): Handler<`${typeof path}/dead`> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    const limit = pageLimit(query)
    const after = wholeNumber(query, 'cursor')
    const found = await listDeadLetters(db, c.req.param('queue'), { after, limit: limit + 1 })
    const page = found.slice(0, limit)
    const next = found.length > limit ? page.at(-1)?.id : null
    return jsonText(c, `{"dead":[${page.map(withData).join(',')}],"next":${next}}`)
  }
}

/** All of them, or those that `?id=` names. */
function purge({ db }: AppOptions): Handler<`${typeof path}/dead`> {
  return async (c) => {
    const ids = list(queryOf(c.req.raw, ['id']), 'id')?.map(numberOf)
    return c.json({ deleted: await purgeDeadLetters(db, c.req.param('queue'), { ids }) })
  }
}

function numberOf(text: string): number {
  if (!/^\d{1,16}$/.test(text)) throw invalidInput('id', 'must be a whole number')
  return Number(text)
}

function redrive({ db }: AppOptions): Handler<`${typeof path}/redrive`> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const chosen = parseShape(choice, await readOptionalObject(c.req.raw), 'body')
    return c.json({ redriven: await redriveDeadLetters(db, c.req.param('queue'), chosen) })
  }
}
