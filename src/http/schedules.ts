import type { Hono } from 'hono'
import * as v from 'valibot'
import { parseJson } from '../json/scan.ts'
import { parseShape } from '../json/shape.ts'
import { objectSlices } from '../json/slices.ts'
import { deleteSchedule, pauseSchedule, resumeSchedule } from '../schedules/change-schedule.ts'
import { putSchedule } from '../schedules/put-schedule.ts'
import { getSchedule, listSchedules, noSchedule } from '../schedules/read-schedules.ts'
import { runNow } from '../schedules/run-now.ts'
import type { NewSchedule, Schedule } from '../schedules/schedule.ts'
import { assertReadableName } from '../schema/names.ts'
import { dataLimits, isLongerThan, readBody, readOptionalObject, tooLarge } from './body.ts'
import type { AppOptions } from './context.ts'
import { pageLimit, queryOf, single } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { jsonText, withData } from './verbatim.ts'

const path = '/v1/schedules/:name'

const text = v.optional(v.nullable(v.string()))

const shape = v.strictObject({
  target: v.strictObject({ kind: v.picklist(['stream', 'queue']), name: v.string() }),
  cron: text,
  timeZone: text,
  everyMs: v.optional(v.nullable(v.number())),
  catchUp: v.optional(v.picklist(['all', 'last', 'none'])),
  type: text,
  key: text,
  data: v.unknown(),
  paused: v.optional(v.boolean()),
})
const nothing = v.strictObject({})

/** `GET /v1/schedules`; `PUT`, `GET` and `DELETE /v1/schedules/{name}`; `POST …/pause|resume|run`. */
export function scheduleRoutes(app: Hono, options: AppOptions): void {
  const { db } = options
  resource(app, '/v1/schedules', { GET: list(options) })
  resource(app, path, { PUT: put(options), GET: show(options), DELETE: remove(options) })
  resource(app, `${path}/pause`, { POST: act(async (name) => scheduleText(await pauseSchedule(db, name))) })
  resource(app, `${path}/resume`, { POST: act(async (name) => scheduleText(await resumeSchedule(db, name))) })
  resource(app, `${path}/run`, { POST: act(async (name) => JSON.stringify(await runNow(db, name))) })
}

function list({ db }: AppOptions): Handler<'/v1/schedules'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    const after = single(query, 'cursor')
    if (after !== undefined) assertReadableName('cursor', after)
    const { schedules, next } = await listSchedules(db, { after, limit: pageLimit(query) })
    return jsonText(
      c,
      `{"schedules":[${schedules.map(scheduleText).join(',')}],"next":${JSON.stringify(next)}}`,
    )
  }
}

function put(options: AppOptions): Handler<typeof path> {
  const { maxDataBytes, maxBytes } = dataLimits(options)
  return async (c) => {
    queryOf(c.req.raw, [])
    const body = await readBody(c.req.raw, { maxBytes })
    const schedule = parseSchedule(body.text, maxDataBytes)
    return jsonText(c, scheduleText(await putSchedule(options.db, c.req.param('name'), schedule)))
  }
}

/** The data is cut out of the text, as that of an event is. */
function parseSchedule(body: string, maxDataBytes: number): NewSchedule {
  const { data: _, ...rest } = parseShape(shape, parseJson(body, 'body', 1), 'body')
  const members = objectSlices(body, 'body')
  objectSlices(members.get('target') ?? '{}', 'target')
  const dataText = members.get('data') ?? ''
  if (isLongerThan(dataText, maxDataBytes)) throw tooLarge('data', maxDataBytes)
  return { ...rest, dataText }
}

function show({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = nameOf(c.req.param('name'))
    const schedule = await getSchedule(db, name)
    if (schedule === null) throw noSchedule(name)
    return jsonText(c, scheduleText(schedule))
  }
}

function remove({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = nameOf(c.req.param('name'))
    if (!(await deleteSchedule(db, name))) throw noSchedule(name)
    return c.body(null, 204)
  }
}

/** An action without a body, or with an empty object. */
function act(run: (name: string) => Promise<string>): Handler<string> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = nameOf(c.req.param('name') ?? '')
    parseShape(nothing, await readOptionalObject(c.req.raw), 'body')
    return jsonText(c, await run(name))
  }
}

function nameOf(name: string): string {
  assertReadableName('schedule', name)
  return name
}

function scheduleText(schedule: Schedule): string {
  return withData(schedule)
}
