import { sql } from 'drizzle-orm'
import { bigintArray, textArray } from '../db/array-literal.ts'
import { toNumbers } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { describeError, describeSafely, loggable } from '../errors/describe-error.ts'
import type { ClaimedMessage } from '../queues/message.ts'

/** The header of a dead letter that says how it died. */
export const failureHeader = 'failure'

/** What stands in a dead letter's `failure` header, as JSON. */
export interface BusFailure {
  /** The same as the dead letter's reason; the first 2048 characters. */
  reason: string
  /** The queue it died in. */
  queue: string
  /** How often it was delivered, the last time included. */
  attempts: number
  /** When, by the clock of the process: ISO 8601. */
  failedAt: string
}

/** Long enough for a person, short enough for a header. */
const maxReasonLength = 2048

/** An error in one line. Of the bus's own, which only says that handlers failed, the handlers' errors. Never throws. */
export function describeFailure(error: unknown): string {
  return describeSafely(() => {
    const { rejections } = (error ?? {}) as { rejections?: unknown }
    if (Array.isArray(rejections) && rejections.length > 0) return rejections.map(describeFailure).join('; ')
    return describeError(error, { withName: true })
  })
}

/**
 * What a middleware throws on. The bus serializes it, and where that throws it forgets the message, whose lease is
 * then kept up for as long as it may be handled: so a plain error in place of what cannot be looked at.
 */
export function serializable(error: unknown): unknown {
  if (loggable(error) !== error) return new Error(describeFailure(error))
  const { rejections } = (error ?? {}) as { rejections?: unknown }
  const whole =
    !Array.isArray(rejections) || rejections.every((rejection) => loggable(rejection) === rejection)
  return whole ? error : new Error(describeFailure(error))
}

/** What {@link buryMessage} takes. */
export interface Burial extends TxOption {
  reason: string
  /** Local time, for the header. */
  now: number
}

/**
 * Moves a message into the dead letters, with its failure among its headers. One statement, fenced by the
 * lease: false, and nothing changed, when that was lost (Q1).
 */
export async function buryMessage(
  db: Db,
  queue: string,
  message: ClaimedMessage,
  burial: Burial,
): Promise<boolean> {
  const on = executorFor(db, burial)
  const reason = clean(burial.reason)
  const failure: BusFailure = {
    reason,
    queue,
    attempts: message.attempt,
    failedAt: new Date(burial.now).toISOString(),
  }
  const headers = JSON.stringify({ ...message.headers, [failureHeader]: JSON.stringify(failure) })
  const { messages } = on.tables
  // The update comes first, for its row is what the function is called for; it moves the row as it is then.
  const [row] = await runQuery<{ held: unknown }>(
    on,
    sql`with marked as (
        update ${messages} set headers = ${headers}::json
          where id = ${message.id}::bigint and lease_token = ${message.lease}::uuid
          returning id, lease_token
      )
      select ${qualified(on, 'fail_messages')}(${queue}::text, ${bigintArray([message.id])},
        array[m.lease_token], ${textArray([reason])}) as held
      from marked m`,
  )
  return row !== undefined && toNumbers(row.held).length > 0
}

/** The failure of a dead letter, from its headers; undefined when its lease ran out with nobody there to say why. */
export function failureOf(headers: Record<string, string> | null): BusFailure | undefined {
  const text = headers?.[failureHeader]
  return text === undefined ? undefined : (JSON.parse(text) as BusFailure)
}

/** Error texts come from anywhere: what Postgres cannot store is replaced, not refused. */
function clean(text: string): string {
  return text.slice(0, maxReasonLength).toWellFormed().replaceAll('\0', '\u{fffd}')
}
