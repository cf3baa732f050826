import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import type { Db } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { wholeNumber } from './validate-message.ts'

/** What {@link sweepQueues} did. */
export interface Swept {
  /** Messages whose delay or lease was over, and that are ready now. */
  released: number
  /** Messages whose last lease was over, and that are dead now. */
  died: number
  /** Finished messages past their retention. */
  removed: number
  /** Dedupe keys past their window. */
  forgotten: number
  /** It stopped at `limit`; call again. */
  more: boolean
}

/**
 * Does for all queues what no claim has done: after it nothing is stranded (Q2), also in queues that
 * have no worker. Meant for every minute or so, from anywhere, also from several processes at once. One
 * statement, which waits for nobody. A database of another environment is left alone (W7).
 *
 * @param options `limit`: at most so many of each kind and queue; 1 to 100000, default 1000
 * @throws INVALID_INPUT
 */
export async function sweepQueues(db: Db, options: { limit?: number } = {}): Promise<Swept> {
  const limit = wholeNumber(options.limit ?? 1000, 'limit', 1, 100_000)
  const [row] = await runQuery<Record<string, string> & { o_more: boolean }>(
    db,
    sql`select o_released::text, o_died::text, o_removed::text, o_forgotten::text, o_more
      from ${qualified(db, 'sweep_queues')}(${limit}::integer, ${db.environment}::text)`,
  )
  if (row === undefined) throw new Error('sweep_queues returned no row')
  return {
    released: toNumber(row.o_released),
    died: toNumber(row.o_died),
    removed: toNumber(row.o_removed),
    forgotten: toNumber(row.o_forgotten),
    more: row.o_more,
  }
}
