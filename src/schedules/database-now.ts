import { sql } from 'drizzle-orm'
import { toDate } from '../db/decode.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/** The database's time, by which everything is due (Q6), in whole milliseconds. */
export async function databaseNow(on: Executor): Promise<Date> {
  const [row] = await runQuery<{ now: unknown }>(on, sql`select clock_timestamp() as now`)
  return toDate(row?.now)
}
