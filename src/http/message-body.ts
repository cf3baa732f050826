import * as v from 'valibot'
import { invalidInput } from '../errors/millrace-error.ts'
import { parseJson } from '../json/scan.ts'
import { parseShape } from '../json/shape.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { NewMessage } from '../queues/message.ts'
import { isLongerThan, tooLarge } from './body.ts'
import { headersOf } from './publish-body.ts'
import { timeOf } from './time-of.ts'

const text = v.optional(v.nullable(v.string()))
const count = v.optional(v.number())

const shape = v.strictObject({
  data: v.unknown(),
  type: text,
  key: text,
  headers: v.optional(v.unknown()),
  priority: count,
  delayMs: count,
  at: v.optional(v.string()),
  maxAttempts: count,
  leaseMs: count,
  backoff: v.optional(v.strictObject({ baseMs: count, factor: count, maxMs: count })),
  dedupeKey: text,
  dedupeWindowMs: count,
})

/** The levels that a message object, and the array around it, put on top of the data's own. */
const envelopeLevels = 2

/** What {@link parseMessages} returns. */
export interface MessageBody {
  messages: NewMessage[]
  /** One message object was sent, not a list. */
  single: boolean
}

/**
 * The messages of a request: one object or an array of them. The data is cut out of the text, never
 * parsed and printed again.
 *
 * @param maxDataBytes the most the data of one message may have
 * @throws INVALID_JSON, JSON_TOO_DEEP, INVALID_INPUT, BODY_TOO_LARGE; `details.field` names the field
 */
export function parseMessages(body: string, maxDataBytes: number): MessageBody {
  const value = parseJson(body, 'body', envelopeLevels)
  if (!Array.isArray(value)) {
    return { messages: [messageOf(parseShape(shape, value, 'body'), body, '', maxDataBytes)], single: true }
  }
  if (value.length === 0) throw invalidInput('body', 'must hold at least one message')
  const parsed = parseShape(v.array(shape), value, 'body')
  const messages = arraySlices(body).map((slice, index) =>
    messageOf(parsed[index]!, slice, `[${index}].`, maxDataBytes),
  )
  return { messages, single: false }
}

/** @param at names the message in errors: '' for a single one, `[3].` for the fourth of many */
function messageOf(
  fields: v.InferOutput<typeof shape>,
  slice: string,
  at: string,
  maxDataBytes: number,
): NewMessage {
  const members = objectSlices(slice, at === '' ? 'body' : at.slice(0, -1))
  const dataText = members.get('data') ?? ''
  if (isLongerThan(dataText, maxDataBytes)) throw tooLarge(`${at}data`, maxDataBytes)
  const backoff = members.get('backoff')
  if (backoff !== undefined) objectSlices(backoff, `${at}backoff`)
  const { data: _, headers: __, at: due, ...rest } = fields
  return {
    ...rest,
    dataText,
    headers: headersOf(members.get('headers') ?? 'null', `${at}headers`),
    ...(due === undefined ? {} : { at: timeOf(`${at}at`, due) }),
  }
}
