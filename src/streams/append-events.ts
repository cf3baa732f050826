import { arrayLiteral } from '../db/array-literal.ts'
import { toNumber, toNumbers } from '../db/decode.ts'
import { fixedStatement, type Value } from '../db/fixed-statement.ts'
import { jsonList, splitJsonList } from '../db/json-list.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { sha256Hex } from '../db/sha256-hex.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import type { NewEvent } from './event.ts'

/** Options of publishEvents. */
export interface PublishOptions extends TxOption {
  /**
   * Makes a repeat within 24 hours return the first call's offsets instead of publishing again:
   * 1 to 256 characters, per stream.
   */
  idempotencyKey?: string
}

/** What publishEvents returns. */
export interface Published {
  /** The offsets of the events, in the order given. */
  offsets: number[]
  /** The idempotency key was known: these are the offsets of the first call. */
  replayed: boolean
  /** The database's number of the stream, by which wakes name it. */
  streamId: number
}

/** As publishEvents, for events that are checked already, and always by a statement of its own. */
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
