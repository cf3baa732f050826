import { arrayLiteral } from '../db/array-literal.ts'
import { toNumber, toNumbers } from '../db/decode.ts'
import { fixedStatement, type Value } from '../db/fixed-statement.ts'
import { jsonList, splitJsonList } from '../db/json-list.ts'
import { assertPartOfBatch } from '../db/batch.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { sha256Hex } from '../db/sha256-hex.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertSharedName } from '../schema/names.ts'
import type { NewEvent } from './event.ts'
import { mayShare, sharedPublishOf } from './share-publishes.ts'
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
 * Small calls without an idempotency key that are under way at once in a process share statements, so that many
 * publishers of a stream cost few commits; over HTTP drivers each call is a request of its own.
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP, IDEMPOTENCY_CONFLICT
 */
export async function publishEvents(
  db: Db,
  stream: string,
  events: readonly NewEvent[],
  options: PublishOptions = {},
): Promise<Published> {
  assertPartOfBatch(options)
  assertSharedName('stream', stream)
  assertEvents(events)
  if (events.length > maxEventsPerPublish) {
    throw invalidInput('events', `are more than ${maxEventsPerPublish} in one call`)
  }
  const valid = events.map((event, index) => validateEvent(event, events.length > 1 ? `[${index}].` : ''))
  const alone = options.tx !== undefined || options.idempotencyKey !== undefined
  return alone || !mayShare(db, valid)
    ? appendEvents(db, stream, valid, options)
    : appendShared(db, stream, valid)
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
 * the streams under the reserved prefix, and always by a statement of its own.
 */
export async function appendEvents(
  db: Db,
  stream: string,
  events: readonly NewEvent[],
  options: PublishOptions = {},
): Promise<Published> {
  const on = executorFor(db, options)
  const statement = options.tx === undefined ? publishStatement : appendStatement
  const values = await publishValues(stream, events, options.idempotencyKey)
  const [row] = await runQuery<AppendRow>(on, statement(on, values))
  if (row === undefined) throw new Error('append returned no row')
  return { offsets: toNumbers(row.o_offsets), replayed: row.o_replayed, streamId: toNumber(row.o_stream_id) }
}

async function appendShared(db: Db, stream: string, events: readonly NewEvent[]): Promise<Published> {
  const publish = sharedPublishOf(db, async (name, all) => {
    const { offsets, streamId } = await appendEvents(db, name, all)
    return offsets.map((offset) => ({ offset, streamId }))
  })
  const places = await publish(stream, events)
  return {
    offsets: places.map(({ offset }) => offset),
    replayed: false,
    streamId: places[0]!.streamId,
  }
}

interface AppendRow {
  o_stream_id: number
  o_offsets: unknown
  o_replayed: boolean
}

const parameters = `$1::text, $2::text::text[], $3::text::text[], ${splitJsonList('$4')}, ${splitJsonList('$5')},
  $6::text, $7::text`

const publishStatement = fixedStatement(
  (named) => `call ${named('publish')}(${parameters}, null, null, null)`,
)

/** The form for a transaction, or for one statement of a batch. */
const appendStatement = fixedStatement(
  (named) => `
    select a.o_stream_id, a.o_offsets, a.o_replayed,
      case when not a.o_replayed then ${named('wake_stream')}(a.o_stream_id) end
    from ${named('append')}(${parameters}) a`,
)

async function publishValues(
  stream: string,
  events: readonly NewEvent[],
  idempotencyKey: string | undefined,
): Promise<Value[]> {
  const hash = idempotencyKey === undefined ? null : await contentHash(idempotencyKey, events)
  return [
    stream,
    arrayLiteral(events.map((event) => event.type)),
    arrayLiteral(events.map((event) => event.key ?? null)),
    jsonList(events.map((event) => event.dataText)),
    jsonList(events.map((event) => (event.headers ? JSON.stringify(event.headers) : null))),
    idempotencyKey ?? null,
    hash,
  ]
}

/** SHA-256 over everything that makes the publish what it is. */
async function contentHash(key: string, events: readonly NewEvent[]): Promise<string> {
  if (key === '' || key.length > 256) throw invalidInput('Idempotency-Key', 'must be 1 to 256 characters')
  const content = JSON.stringify(
    events.map((event) => [event.type, event.key ?? null, event.dataText, event.headers ?? null]),
  )
  return sha256Hex(content)
}
