import { sql, type SQL } from 'drizzle-orm'
import { textArray } from '../db/array-literal.ts'
import { toNumber, toNumbers } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { sha256Hex } from '../db/sha256-hex.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertSharedName } from '../schema/names.ts'
import type { NewEvent } from './event.ts'
import { validateEvent } from './validate-event.ts'

/** One statement and one lock serve a call; more than this belongs into several. */
export const maxEventsPerPublish = 10_000

/** Options of {@link publishEvents}. */
export interface PublishOptions extends TxOption {
  /**
   * Makes a repeat within 24 hours return the first call's offsets instead of publishing again:
   * 1 to 256 characters, per stream.
   */
  idempotencyKey?: string
}

/** What {@link publishEvents} returns. */
export interface Published {
  /** The offsets of the events, in the order given. */
  offsets: number[]
  /** The idempotency key was known: these are the offsets of the first call. */
  replayed: boolean
  /** The database's number of the stream, by which wakes name it. */
  streamId: number
}

/**
 * Publishes events to a stream, all or none, creating the stream with its first event. One round trip,
 * one statement. Outside a transaction it commits by itself and wakes listeners after the commit;
 * with `{ tx }` the events, and the wake, come with the caller's commit.
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP, IDEMPOTENCY_CONFLICT
 */
export async function publishEvents(
  db: Db,
  stream: string,
  events: readonly NewEvent[],
  options: PublishOptions = {},
): Promise<Published> {
  assertSharedName('stream', stream)
  assertEvents(events)
  if (events.length > maxEventsPerPublish) {
    throw invalidInput('events', `are more than ${maxEventsPerPublish} in one call`)
  }
  const valid = events.map((event, index) => validateEvent(event, events.length > 1 ? `[${index}].` : ''))
  return appendEvents(db, stream, valid, options)
}

/**
 * The rule for what is to be several events.
 *
 * @throws INVALID_INPUT
 */
export function assertEvents(events: unknown): void {
  if (!Array.isArray(events)) throw invalidInput('events', 'must be an array')
}

/**
 * As {@link publishEvents}, for events and stream names that Millrace made itself: it also writes to
 * the streams under the reserved prefix.
 */
export async function appendEvents(
  db: Db,
  stream: string,
  events: readonly NewEvent[],
  options: PublishOptions = {},
): Promise<Published> {
  const on = executorFor(db, options)
  const args = await publishArguments(stream, events, options.idempotencyKey)
  const statement =
    options.tx === undefined
      ? sql`call ${qualified(on, 'publish')}(${args}, null, null, null)`
      : appendStatement(on, args)
  const [row] = await runQuery<AppendRow>(on, statement)
  if (row === undefined) throw new Error('append returned no row')
  return { offsets: toNumbers(row.o_offsets), replayed: row.o_replayed, streamId: toNumber(row.o_stream_id) }
}

interface AppendRow {
  o_stream_id: number
  o_offsets: unknown
  o_replayed: boolean
}

/** The form for a transaction, or for one statement of a batch. */
function appendStatement(on: Parameters<typeof qualified>[0], args: SQL): SQL {
  return sql`
    select a.o_stream_id, a.o_offsets, a.o_replayed,
      case when not a.o_replayed then ${qualified(on, 'wake_stream')}(a.o_stream_id) end
    from ${qualified(on, 'append')}(${args}) a`
}

async function publishArguments(
  stream: string,
  events: readonly NewEvent[],
  idempotencyKey: string | undefined,
): Promise<SQL> {
  const hash = idempotencyKey === undefined ? null : await contentHash(idempotencyKey, events)
  const columns = [
    textArray(events.map((event) => event.type)),
    textArray(events.map((event) => event.key ?? null)),
    textArray(events.map((event) => event.dataText)),
    textArray(events.map((event) => (event.headers ? JSON.stringify(event.headers) : null))),
  ]
  return sql`${stream}::text, ${sql.join(columns, sql`, `)}, ${idempotencyKey ?? null}::text, ${hash}::text`
}

/** SHA-256 over everything that makes the publish what it is. */
async function contentHash(key: string, events: readonly NewEvent[]): Promise<string> {
  if (key === '' || key.length > 256) throw invalidInput('Idempotency-Key', 'must be 1 to 256 characters')
  const content = JSON.stringify(
    events.map((event) => [event.type, event.key ?? null, event.dataText, event.headers ?? null]),
  )
  return sha256Hex(content)
}
