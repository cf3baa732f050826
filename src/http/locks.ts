import type { Hono } from 'hono'
import * as v from 'valibot'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { acquireLock } from '../locks/acquire.ts'
import { releaseLock, renewLock } from '../locks/hold.ts'
import { lockLost } from '../locks/lock.ts'
import { readLock } from '../locks/read-lock.ts'
import { assertSharedName } from '../schema/names.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { queryOf } from './query.ts'
import { resource, type Handler } from './resource.ts'

const path = '/v1/locks/:name'

/** As for a read that waits: proxies cut what is silent for longer. */
const maxWaitMs = 30_000

const acquisition = v.strictObject({ ttlMs: v.number(), waitMs: v.optional(v.number()) })
const renewal = v.strictObject({ token: v.string(), ttlMs: v.number() })
const release = v.strictObject({ token: v.string() })

/** `POST /v1/locks/{name}` takes it, `PUT` renews, `DELETE` gives it back, `GET` looks. */
export function lockRoutes(app: Hono, options: AppOptions): void {
  resource(app, path, {
    POST: acquire(options),
    PUT: renew(options),
    DELETE: giveBack(options),
    GET: show(options),
  })
}

function acquire({ db, ports }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const wanted = parseShape(acquisition, await readJsonObject(c.req.raw), 'body')
    if ((wanted.waitMs ?? 0) > maxWaitMs) throw invalidInput('waitMs', `must be at most ${maxWaitMs}`)
    const name = c.req.param('name')
    const lock = await acquireLock(db, ports, name, { ...wanted, signal: c.req.raw.signal })
    if (lock === null) throw new MillraceError('CONFLICT', `the lock "${name}" is held by another`)
    return c.json(lock)
  }
}

function renew({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = nameOf(c)
    const { token, ttlMs } = parseShape(renewal, await readJsonObject(c.req.raw), 'body')
    const until = await renewLock(db, { name, token }, { ttlMs })
    if (until === null) throw lockLost(name)
    return c.json({ until })
  }
}

function giveBack({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = nameOf(c)
    const { token } = parseShape(release, await readJsonObject(c.req.raw), 'body')
    if (!(await releaseLock(db, { name, token }))) throw lockLost(name)
    return c.body(null, 204)
  }
}

/** A lock that was never taken, or long ago, is simply not held. */
function show({ db }: AppOptions): Handler<typeof path> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const name = c.req.param('name')
    return c.json((await readLock(db, name)) ?? { name, held: false, fence: null, until: null })
  }
}

function nameOf(c: Parameters<Handler<typeof path>>[0]): string {
  const name = c.req.param('name')
  assertSharedName('lock', name)
  return name
}
