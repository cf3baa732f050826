import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../db/array-literal.ts'
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
    textArray(unlessAllNull(valid.map(pick)))
  const numbers = (pick: (message: ReadyMessage) => number | null): SQL => {
    const values = unlessAllNull(valid.map(pick))
    return values === null ? sql`null::bigint[]` : bigintArray(values)
  }
  const columns = [
    textArray(valid.map((message) => message.dataText)),
    texts((message) => message.type),
    texts((message) => message.key),
    texts((message) => message.headers),
    numbers((message) => message.priority),
    numbers((message) => message.delayMs),
    texts((message) => message.at),
    numbers((message) => message.maxAttempts),
    numbers((message) => message.leaseMs),
    numbers((message) => message.backoff.baseMs),
    numbers((message) => message.backoff.maxMs),
    sql`${texts((message) => String(message.backoff.factor))}::double precision[]`,
    texts((message) => message.dedupeKey),
    numbers((message) => (message.dedupeKey === null ? null : message.dedupeWindowMs)),
  ]
  return sql.join(columns, sql`, `)
}

/** Most messages leave most fields out: then the whole array is left out. */
function unlessAllNull<T>(values: (T | null)[]): (T | null)[] | null {
  return values.every((value) => value === null) ? null : values
}
