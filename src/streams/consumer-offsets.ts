import { and, eq, sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { qualified, runQuery, translated } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { assertLocalName, assertReadableName } from '../schema/names.ts'
import { assertOffset } from './read-events.ts'

/** A consumer of a stream, by name. */
export interface ConsumerId {
  stream: string
  consumer: string
}

/**
 * The saved offset of a consumer: 0 when it never saved, or the stream does not exist.
 *
 * @throws INVALID_NAME
 */
export async function getOffset(db: Db, id: ConsumerId, options: TxOption = {}): Promise<number> {
  assertConsumer(id)
  const on = executorFor(db, options)
  const { streams, offsets } = on.tables
  const [row] = await translated(
    on.drizzle
      .select({ offset: offsets.offset })
      .from(offsets)
      .innerJoin(streams, eq(streams.id, offsets.streamId))
      .where(and(eq(streams.name, id.stream), eq(offsets.consumer, id.consumer))),
  )
  return row === undefined ? 0 : row.offset
}

/**
 * Saves how far a consumer has come. A saved offset never goes back: saving less is a silent no-op (S3).
 * One statement. Returns the offset that stands afterwards.
 *
 * @throws INVALID_NAME, INVALID_INPUT, NOT_FOUND (no such stream), OFFSET_AHEAD
 */
export async function saveOffset(
  db: Db,
  id: ConsumerId,
  offset: number,
  options: TxOption = {},
): Promise<number> {
  return writeOffset(executorFor(db, options), id, offset, 'forward')
}

/**
 * Moves a consumer to an offset, back or forth: the only way back.
 *
 * @throws INVALID_NAME, INVALID_INPUT, NOT_FOUND (no such stream), OFFSET_AHEAD
 */
export async function seekOffset(
  db: Db,
  id: ConsumerId,
  offset: number,
  options: TxOption = {},
): Promise<number> {
  return writeOffset(executorFor(db, options), id, offset, 'anywhere')
}

async function writeOffset(
  on: Executor,
  id: ConsumerId,
  offset: number,
  direction: 'forward' | 'anywhere',
): Promise<number> {
  assertConsumer(id)
  assertOffset('offset', offset)
  const kept = direction === 'forward' ? sql`greatest(o."offset", excluded."offset")` : sql`excluded."offset"`
  const [row] = await runQuery<{ last: string; found: boolean; saved: string | null }>(
    on,
    sql`with target as (
        select s.id, ${qualified(on, 'last_offset')}() as last from ${on.tables.streams} s where s.name = ${id.stream}
      ), saved as (
        insert into ${on.tables.offsets} as o (stream_id, consumer, "offset")
        select t.id, ${id.consumer}::text, ${offset}::bigint from target t where ${offset}::bigint <= t.last
        on conflict (stream_id, consumer) do update set "offset" = ${kept}, updated_at = clock_timestamp()
        returning o."offset"
      )
      select t.last::text, true as found, (select "offset"::text from saved) as saved from target t`,
  )
  if (row === undefined) throw new MillraceError('NOT_FOUND', `there is no stream "${id.stream}"`)
  if (row.saved !== null) return toNumber(row.saved)
  throw new MillraceError(
    'OFFSET_AHEAD',
    `offset ${offset} lies beyond ${row.last}, the last one this database has given out`,
    { details: { field: 'offset', last: toNumber(row.last) } },
  )
}

function assertConsumer(id: ConsumerId): void {
  assertReadableName('stream', id.stream)
  assertLocalName('consumer', id.consumer)
}
