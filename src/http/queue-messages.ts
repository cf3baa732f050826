import type { Hono } from 'hono'
import * as v from 'valibot'
import { invalidInput } from '../errors/millrace-error.ts'
import { parseJson } from '../json/scan.ts'
import { parseShape } from '../json/shape.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { Held } from '../queues/message.ts'
import { sendMessages } from '../queues/send-messages.ts'
import {
  ackMessages,
  extendMessages,
  failMessages,
  retryMessages,
  returnMessages,
} from '../queues/settle-messages.ts'
import { dataLimits, readBody } from './body.ts'
import { claim } from './claim.ts'
import type { AppOptions } from './context.ts'
import { parseMessages } from './message-body.ts'
import { queryOf, wholeNumber } from './query.ts'
import { resource, type Handler } from './resource.ts'

const path = '/v1/queues/:queue'

const held = { id: v.number(), lease: v.string() }
const plain = v.strictObject(held)
const retries = v.strictObject({ ...held, delayMs: v.optional(v.number()), error: v.optional(v.string()) })
const failures = v.strictObject({ ...held, reason: v.string() })

/**
 * `POST /v1/queues/{queue}/messages` and `…/claim`; `POST …/ack|return|retry|extend|fail` take
 * `[{id, lease}]` and answer for each, in the order given, whether its lease still held.
 */
export function queueMessageRoutes(app: Hono, options: AppOptions): void {
  const { db } = options
  resource(app, `${path}/messages`, { POST: send(options) })
  resource(app, `${path}/claim`, { POST: claim(options) })
  const settle = <Item extends Held>(name: string, shape: v.GenericSchema<Item>, run: Settle<Item>): void =>
    resource(app, `${path}/${name}`, { POST: settleEach(options, shape, run) })
  settle('ack', plain, async (queue, items) => toHeld(await ackMessages(db, queue, items)))
  settle('return', plain, async (queue, items) => toHeld(await returnMessages(db, queue, items)))
  settle('fail', failures, async (queue, items) => toHeld(await failMessages(db, queue, items)))
  settle('retry', retries, async (queue, items) => {
    const outcomes = await retryMessages(db, queue, items)
    return outcomes.map((outcome) => ({ held: outcome !== 'lost', dead: outcome === 'dead' }))
  })
  resource(app, `${path}/extend`, { POST: extend(options) })
}

function send(options: AppOptions): Handler<`${typeof path}/messages`> {
  const { maxDataBytes, maxBytes } = dataLimits(options)
  return async (c) => {
    queryOf(c.req.raw, [])
    const { text } = await readBody(c.req.raw, { maxBytes })
    const { messages, single } = parseMessages(text, maxDataBytes)
    const sent = await sendMessages(options.db, c.req.param('queue'), messages)
    return c.json(single ? sent.messages[0] : { messages: sent.messages }, 201)
  }
}

/** What became of each item. */
type Settle<Item> = (queue: string, items: Item[]) => Promise<object[]>

function toHeld(leases: boolean[]): object[] {
  return leases.map((stillHeld) => ({ held: stillHeld }))
}

function settleEach<Item extends Held>(
  options: AppOptions,
  shape: v.GenericSchema<Item>,
  run: Settle<Item>,
): Handler<string> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const items = await readItems(c.req.raw, options, shape)
    return c.json({ results: results(items, await run(c.req.param('queue') ?? '', items)) })
  }
}

/** `?leaseMs=` is how long from now on; absent, each message's own time. */
function extend(options: AppOptions): Handler<`${typeof path}/extend`> {
  return async (c) => {
    const leaseMs = wholeNumber(queryOf(c.req.raw, ['leaseMs']), 'leaseMs')
    const items = await readItems(c.req.raw, options, plain)
    const leases = await extendMessages(options.db, c.req.param('queue'), items, { leaseMs })
    return c.json({ results: results(items, toHeld(leases)) })
  }
}

function results(items: Held[], outcomes: object[]): object[] {
  return items.map(({ id }, index) => ({ id, ...outcomes[index] }))
}

/** Ten thousand leases are most of a megabyte, so these requests may have as much as those with data. */
async function readItems<Item extends Held>(
  request: Request,
  options: AppOptions,
  shape: v.GenericSchema<Item>,
): Promise<Item[]> {
  const { text } = await readBody(request, { maxBytes: dataLimits(options).maxBytes })
  const value = parseJson(text, 'body')
  if (!Array.isArray(value)) throw invalidInput('body', 'must be a list of {id, lease}')
  const items = parseShape(v.array(shape), value, 'body')
  for (const [index, slice] of arraySlices(text).entries()) objectSlices(slice, `[${index}]`)
  return items
}
