import { sql, type SQL } from 'drizzle-orm'
import { textArray } from '../../../src/db/array-literal.ts'
import { toNumber, toNumbers } from '../../../src/db/decode.ts'
import type { Executor } from '../../../src/db/port.ts'
import { qualified, runQuery } from '../../../src/db/run.ts'

/** What the SQL functions take; the arrays run in parallel. */
export interface AppendInput {
  data: string[]
  types?: string[]
  keys?: (string | null)[]
  headers?: (string | null)[]
  idempotencyKey?: string
  contentHash?: string
}

export interface Appended {
  streamId: number
  offsets: number[]
  replayed: boolean
}

/** Calls the procedure `publish`. */
export async function publish(on: Executor, stream: string, input: AppendInput): Promise<Appended> {
  return appended(
    await runQuery(
      on,
      sql`call ${qualified(on, 'publish')}(${argumentsOf(stream, input)}, null, null, null)`,
    ),
  )
}

/** Calls the function `append`, without a wake. */
export async function append(on: Executor, stream: string, input: AppendInput): Promise<Appended> {
  return appended(
    await runQuery(on, sql`select * from ${qualified(on, 'append')}(${argumentsOf(stream, input)})`),
  )
}

function argumentsOf(stream: string, input: AppendInput): SQL {
  const { data, types = data.map(() => 'test'), keys = data.map(() => null) } = input
  const { headers = data.map(() => null), idempotencyKey = null, contentHash = null } = input
  const arrays = [types, keys, data, headers].map(textArray)
  return sql`${stream}::text, ${sql.join(arrays, sql`, `)}, ${idempotencyKey}::text, ${contentHash}::text`
}

function appended([row]: Record<string, unknown>[]): Appended {
  return {
    streamId: toNumber(row?.o_stream_id),
    offsets: toNumbers(row?.o_offsets),
    replayed: row?.o_replayed as boolean,
  }
}

/** A page as `read_events` returns it. */
export interface Page {
  horizon: number
  last: number
  rows: { offset: number; type: string; key: string | null; data: string; headers: string | null }[]
}

/** Calls `read_events`. */
export async function read(
  on: Executor,
  stream: string,
  range: { after?: number; limit?: number; types?: string[]; maxBytes?: number } = {},
): Promise<Page> {
  const { after = 0, limit = 1000, types = null, maxBytes = 1_000_000 } = range
  const rows = await runQuery<Record<string, unknown>>(
    on,
    sql`select o_offset::text, o_type, o_key, o_data, o_headers
      from ${qualified(on, 'read_events')}(${stream}::text, ${after}::bigint, ${limit}::integer,
        ${textArray(types)}, ${textArray(null)}, ${maxBytes}::bigint, 10000)`,
  )
  const summary = rows.pop()
  return {
    horizon: (JSON.parse(summary?.o_data as string) as { horizon: number }).horizon,
    last: toNumber(summary?.o_offset),
    rows: rows.map((row) => ({
      offset: toNumber(row.o_offset),
      type: row.o_type as string,
      key: row.o_key as string | null,
      data: row.o_data as string,
      headers: row.o_headers as string | null,
    })),
  }
}

/** The data of what `read_events` returns. */
export async function readData(on: Executor, stream: string, after = 0): Promise<string[]> {
  return (await read(on, stream, { after })).rows.map((row) => row.data)
}
