import { sql } from 'drizzle-orm'
import { executorFor, type Executor, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { assertChannelName, utf8Length } from './channel-name.ts'

/** Postgres refuses from 8000 bytes on (BLCKSZ - NAMEDATALEN - 128). */
export const maxPayloadBytes = 7999

/**
 * Sends a notification to everyone who listens to a user channel, here or in any other program. Inside
 * a transaction (`{ tx }`) it is delivered if and only if that commits, and two equal ones of one
 * transaction arrive as one. Nobody stores it: who does not listen now never gets it.
 *
 * @param channel 1 to 63 bytes
 * @param payload at most 7999 bytes of text; checked before the round trip. May be empty.
 * @throws INVALID_NAME, PAYLOAD_TOO_LARGE, INVALID_INPUT
 */
export async function notify(
  db: Executor,
  channel: string,
  payload: string,
  options: TxOption = {},
): Promise<void> {
  assertChannelName(channel, db.schema)
  assertPayload(payload)
  await runQuery(
    executorFor(db, options),
    sql`select pg_catalog.pg_notify(${channel}::text, ${payload}::text)`,
  )
}

function assertPayload(payload: string): void {
  if (typeof payload !== 'string') throw invalidInput('payload', 'must be a string')
  // no UTF-16 unit takes less than one byte, so a huge text need not be encoded to be refused
  const bytes = payload.length > maxPayloadBytes ? payload.length : utf8Length(payload)
  if (bytes > maxPayloadBytes) {
    throw new MillraceError('PAYLOAD_TOO_LARGE', `a notification carries at most ${maxPayloadBytes} bytes`, {
      details: { field: 'payload', limit: maxPayloadBytes },
    })
  }
  if (payload.includes('\0')) throw invalidInput('payload', 'must not contain a NUL')
  if (!payload.isWellFormed()) throw invalidInput('payload', 'must be well-formed Unicode')
}
