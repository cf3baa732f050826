import { sql } from 'drizzle-orm'
import { textArray } from '../db/array-literal.ts'
import { toDate, toNumber } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
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
  const [header, ...rows] = await runQuery<ReadRow>(
    on,
    sql`select o_horizon::text, o_offset::text, o_type, o_key, o_data, o_headers, o_published_at, o_running::text,
        o_more, o_held
      from ${qualified(on, 'read_events')}(${stream}::text, ${after}::bigint, ${limit}::integer,
        ${textArray(types.exact)}, ${textArray(types.patterns)},
        ${maxPageBytes}::bigint, ${filterScanLimit}::integer)`,
  )
  if (header === undefined) throw new Error('read_events returned no header')
  assertNotAhead(after, toNumber(header.o_offset))
  return toPage(header, rows, after, limit)
}

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

interface ReadRow {
  o_horizon: string
  o_offset: string
  o_type: string
  o_key: string | null
  o_data: string
  o_headers: string | null
  o_published_at: unknown
  o_running: string | null
  o_more: boolean | null
  o_held: boolean | null
}

/**
 * `next` is never more than the offset of an event that was there: a number that nobody has committed may be
 * given out a second time after a crash of the database, and whoever had read on from it would miss that event.
 */
function toPage(header: ReadRow, rows: ReadRow[], after: number, limit: number): EventPage {
  const last = rows.at(-1)
  const cut = last !== undefined && (rows.length >= limit || toNumber(last.o_running ?? 0) >= maxPageBytes)
  const end = last === undefined ? 0 : toNumber(last.o_offset)
  return {
    events: rows.map(toEvent),
    next: Math.max(after, end, cut ? 0 : toNumber(header.o_running)),
    horizon: toNumber(header.o_horizon),
    more: cut || header.o_more === true,
    held: header.o_held === true,
  }
}

function toEvent(row: ReadRow): StoredEvent {
  return {
    offset: toNumber(row.o_offset),
    type: row.o_type,
    key: row.o_key,
    dataText: row.o_data,
    headers: row.o_headers === null ? null : (JSON.parse(row.o_headers) as Record<string, string>),
    publishedAt: toDate(row.o_published_at),
  }
}
