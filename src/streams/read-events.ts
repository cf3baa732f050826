import { arrayLiteral } from '../db/array-literal.ts'
import { toNumber } from '../db/decode.ts'
import { fixedStatement } from '../db/fixed-statement.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { assertReadableName } from '../schema/names.ts'
import type { StoredEvent } from './event.ts'
import { splitTypes } from './type-filter.ts'

/** A page holds at most so many events. */
export const maxPageEvents = 1000
/** With the event that exceeds it, and doubled by quoting, below the 10 MB that Neon's HTTP endpoint answers with. */
const maxPageBytes = 3 * 1024 * 1024
/** How many events a filtered read looks at before it answers with what it has. */
const filterScanLimit = 10_000
/** Where Postgres counts from. */
const year2000 = Date.UTC(2000)

/** What {@link readEvents} takes. */
export interface ReadRange {
  /** Read what comes after this offset. Default 0: from the start. */
  after?: number
  /** At most so many events: default 100, at most 1000; 0 and less reads nothing. */
  limit?: number
  /** Only events of these types; `*` at the end matches any rest. */
  types?: readonly string[]
}

/** What {@link readEvents} returns. */
export interface EventPage {
  events: StoredEvent[]
  /** Read on from here: pass it as `after`. */
  next: number
  /** Up to here every publish is decided; nobody reads past it. Null at limit 0 and less, where nothing was asked. */
  horizon: number | null
  /** There may be more right now; if false, wait for a wake. */
  more: boolean
  /**
   * Something is committed above the horizon, where a transaction that is still open holds it back. Should that
   * one roll back, nobody is woken: look again after a while.
   */
  held: boolean
}

/**
 * Reads a stream after an offset, in offset order, never past the horizon: who follows `next` sees
 * every committed event exactly once (S1). A stream that does not exist reads as empty. One round
 * trip, one statement; at limit 0 and less, none (S5).
 *
 * @throws INVALID_NAME, INVALID_INPUT, OFFSET_AHEAD when `after` is beyond everything ever numbered,
 *   ISOLATION_LEVEL when `{ tx }` is above READ COMMITTED
 */
export async function readEvents(
  db: Db,
  stream: string,
  range: ReadRange = {},
  options: TxOption = {},
): Promise<EventPage> {
  assertReadableName('stream', stream)
  const after = assertOffset('after', range.after ?? 0)
  const limit = Math.min(assertLimit(range.limit ?? 100), maxPageEvents)
  const types = splitTypes(range.types)
  if (limit <= 0) return { events: [], next: after, horizon: null, more: false, held: false }
  const on = executorFor(db, options)
  const rows = await runQuery<EventRow>(
    on,
    readStatement(on, [
      stream,
      after,
      limit,
      types.exact && arrayLiteral(types.exact),
      types.patterns && arrayLiteral(types.patterns),
      maxPageBytes,
      filterScanLimit,
    ]),
  )
  const summary = rows.pop()
  if (summary === undefined) throw new Error('read_events returned no summary')
  assertNotAhead(after, toNumber(summary.o_offset))
  return toPage(rows, JSON.parse(summary.o_data) as Summary, after)
}

const readStatement = fixedStatement(
  (named) => `select o_offset, o_type, o_key, o_data, o_headers, o_published
    from ${named('read_events')}($1::text, $2::bigint, $3::integer, $4::text::text[], $5::text::text[], $6::bigint, $7::integer)`,
)

/**
 * Checks that a number can be an offset.
 *
 * @throws INVALID_INPUT
 */
export function assertOffset(field: string, offset: number): number {
  if (!Number.isSafeInteger(offset) || offset < 0)
    throw invalidInput(field, 'must be a whole number, 0 or more')
  return offset
}

/** All that is 0 or less reads nothing (S5). */
function assertLimit(limit: number): number {
  if (typeof limit === 'number' && (limit <= 0 || Number.isInteger(limit))) return limit
  throw invalidInput('limit', 'must be a whole number')
}

function assertNotAhead(after: number, lastNumber: number): void {
  if (after <= lastNumber) return
  throw new MillraceError(
    'OFFSET_AHEAD',
    `after=${after} lies beyond ${lastNumber}, the last offset this database has given out: it may be another database, or one restored to an earlier time`,
    { details: { field: 'after', last: lastNumber } },
  )
}

interface EventRow {
  o_offset: unknown
  o_type: string
  o_key: string | null
  o_data: string
  o_headers: string | null
  /** Microseconds since 2000, in hex. */
  o_published: string
}

/** What the last row has as `o_data`. */
interface Summary {
  horizon: number
  through: number
  more: boolean
  held: boolean
}

/**
 * `next` is never more than the offset of an event that was there: a number that nobody has committed may be
 * given out a second time after a crash of the database, and whoever had read on from it would miss that event.
 */
function toPage(rows: EventRow[], { horizon, through, more, held }: Summary, after: number): EventPage {
  const events = rows.map(toEvent)
  return { events, next: Math.max(after, events.at(-1)?.offset ?? 0, through), horizon, more, held }
}

function toEvent(row: EventRow): StoredEvent {
  return {
    offset: toNumber(row.o_offset),
    type: row.o_type,
    key: row.o_key,
    dataText: row.o_data,
    headers: row.o_headers === null ? null : (JSON.parse(row.o_headers) as Record<string, string>),
    publishedAt: new Date(year2000 + Math.floor(Number.parseInt(row.o_published, 16) / 1000)),
  }
}
