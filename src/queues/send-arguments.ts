import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../db/array-literal.ts'
import { jsonArray } from '../db/json-list.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import type { NewMessage } from './message.ts'
import { validateMessage, type ReadyMessage } from './validate-message.ts'

/** One statement serves a call; more than this belongs into several. */
export const maxMessagesPerSend = 10_000

/**
 * The arrays that `send_messages` and its kin take, in their order.
 *
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP; `details.field` names the field
 */
export function sendArguments(messages: readonly NewMessage[]): SQL {
  if (messages.length > maxMessagesPerSend)
    throw invalidInput('messages', `are more than ${maxMessagesPerSend} in one call`)
  const valid = messages.map((message, index) =>
    validateMessage(message, messages.length > 1 ? `[${index}].` : ''),
  )
  const texts = (pick: (message: ReadyMessage) => string | null): SQL =>
    valid.every((message) => pick(message) === null) ? textArray(null) : textArray(valid.map(pick))
  const numbers = (pick: (message: ReadyMessage) => number | null): SQL =>
    valid.every((message) => pick(message) === null) ? sql`null::bigint[]` : bigintArray(valid.map(pick))
  const settings = (pick: (message: ReadyMessage) => number): number[] => {
    const first = valid.length > 0 ? pick(valid[0]!) : 0
    return valid.every((message) => pick(message) === first) ? [first] : valid.map(pick)
  }
  const columns = [
    jsonArray(valid.map((message) => message.dataText)),
    texts((message) => message.type),
    texts((message) => message.key),
    valid.every(({ headers }) => headers === null)
      ? textArray(null)
      : jsonArray(valid.map(({ headers }) => headers)),
    bigintArray(settings((message) => message.priority)),
    numbers((message) => message.delayMs),
    texts((message) => message.at),
    bigintArray(settings((message) => message.maxAttempts)),
    bigintArray(settings((message) => message.leaseMs)),
    bigintArray(settings((message) => message.backoff.baseMs)),
    bigintArray(settings((message) => message.backoff.maxMs)),
    sql`${textArray(settings((message) => message.backoff.factor).map(String))}::double precision[]`,
    texts((message) => message.dedupeKey),
    numbers((message) => (message.dedupeKey === null ? null : message.dedupeWindowMs)),
  ]
  return sql.join(columns, sql`, `)
}
