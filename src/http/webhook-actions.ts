import type { Hono } from 'hono'
import * as v from 'valibot'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { listAttempts, listDeliveries } from '../webhooks/operations/list-deliveries.ts'
import { redriveWebhook, retryDelivery } from '../webhooks/operations/redrive.ts'
import { rotateSecret } from '../webhooks/operations/rotate-secret.ts'
import { seekWebhook, type SeekTarget } from '../webhooks/operations/seek-webhook.ts'
import { pauseWebhook, resumeWebhook } from '../webhooks/operations/set-state.ts'
import { testWebhook } from '../webhooks/operations/test-webhook.ts'
import { readOptionalObject } from './body.ts'
import { notifyHost, type AppOptions } from './context.ts'
import { queryOf, single, wholeNumber } from './query.ts'
import { resource, type Handler } from './resource.ts'
import { timeOf } from './time-of.ts'

const item = '/v1/webhooks/:id'

const rotation = v.strictObject({ secret: v.optional(v.string()), overlapMs: v.optional(v.number()) })
const place = v.strictObject({ offset: v.optional(v.number()), time: v.optional(v.string()) })
const span = v.strictObject({ since: v.optional(v.string()) })
const nothing = v.strictObject({})

type Action = (id: string, body: Record<string, unknown>, signal: AbortSignal) => Promise<object>

/** `POST /v1/webhooks/{id}/test|pause|resume|rotate-secret|seek|redrive`, and the lists of deliveries and attempts. */
export function webhookActionRoutes(app: Hono, options: AppOptions): void {
  const { db, ports } = options
  const action = (name: string, run: Action): void => {
    resource(app, `${item}/${name}`, { POST: act(options, run) })
  }
  action('pause', (id, body) => none(body, () => pauseWebhook(db, id, ports.clock)))
  action('resume', (id, body) => none(body, () => resumeWebhook(db, id)))
  const rules = { sealer: options.sealer, clock: ports.clock }
  action('rotate-secret', (id, body) => rotateSecret(db, id, parseShape(rotation, body, 'body'), rules))
  action('seek', async (id, body) => ({ offset: await seekWebhook(db, id, targetOf(body)) }))
  action('redrive', async (id, body) => ({ redriven: await redriveWebhook(db, id, sinceOf(body)) }))
  action('test', (id, body, signal) => none(body, () => sendTest(options, id, signal)))
  resource(app, `${item}/deliveries`, { GET: deliveries(options) })
  resource(app, `${item}/attempts`, { GET: attempts(options) })
  resource(app, `${item}/deliveries/:offset/retry`, { POST: retry(options) })
}

/** An action without a body, or with one. */
function act(options: AppOptions, run: Action): Handler<string> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const id = c.req.param('id') ?? ''
    const body = await readOptionalObject(c.req.raw)
    const answer = await run(id, body as Record<string, unknown>, c.req.raw.signal)
    notifyHost(options.ports, options.onWebhookChange, { id, change: 'revived' })
    return c.json(answer)
  }
}

function none<T>(body: Record<string, unknown>, run: () => Promise<T>): Promise<T> {
  parseShape(nothing, body, 'body')
  return run()
}

async function sendTest(
  { db, delivery, ports }: AppOptions,
  id: string,
  signal: AbortSignal,
): Promise<object> {
  if (delivery === undefined)
    throw new MillraceError('CONFLICT', 'this host does not deliver, so it sends no test')
  const result = await testWebhook(db, id, { delivery, clock: ports.clock, signal })
  const durationMs = Math.round(result.durationMs)
  if (result.kind === 'error')
    return { delivered: false, error: `${result.reason}: ${result.message}`, durationMs }
  const { status, body } = result
  return { delivered: status >= 200 && status < 300, status, answer: body, durationMs }
}

function targetOf(body: Record<string, unknown>): SeekTarget {
  const { offset, time } = parseShape(place, body, 'body')
  if ((offset === undefined) === (time === undefined))
    throw invalidInput('offset', 'or time must be given, one of both')
  return offset === undefined ? { time: timeOf('time', time ?? '') } : { offset }
}

function sinceOf(body: Record<string, unknown>): Date | undefined {
  const { since } = parseShape(span, body, 'body')
  return since === undefined ? undefined : timeOf('since', since)
}

function deliveries({ db }: AppOptions): Handler<`${typeof item}/deliveries`> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['state', 'cursor', 'limit'])
    const range = { cursor: wholeNumber(query, 'cursor'), limit: wholeNumber(query, 'limit') }
    return c.json(await listDeliveries(db, c.req.param('id'), { ...range, state: single(query, 'state') }))
  }
}

function attempts({ db }: AppOptions): Handler<`${typeof item}/attempts`> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['outcome', 'offset', 'cursor', 'limit'])
    const [cursor, limit, offset] = ['cursor', 'limit', 'offset'].map((name) => wholeNumber(query, name))
    const outcome = single(query, 'outcome')
    return c.json(await listAttempts(db, c.req.param('id'), { cursor, limit, offset, outcome }))
  }
}

function retry(options: AppOptions): Handler<`${typeof item}/deliveries/:offset/retry`> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const offset = /^\d+$/.test(c.req.param('offset')) ? Number(c.req.param('offset')) : Number.NaN
    if (!Number.isSafeInteger(offset)) throw invalidInput('offset', 'must be a whole number')
    await retryDelivery(options.db, c.req.param('id'), offset)
    notifyHost(options.ports, options.onWebhookChange, { id: c.req.param('id'), change: 'revived' })
    return c.body(null, 204)
  }
}
