import { sql } from 'drizzle-orm'
import { toDate, toNumber } from '../db/decode.ts'
import { executorFor, type Executor, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { assertReadableName } from '../schema/names.ts'

/** A lock as others see it: everything but the token. */
export interface LockState {
  name: string
  /** By the database's clock, at the moment of asking. */
  held: boolean
  /** That of the holder, or of the last one. */
  fence: number
  /** When it ends, or ended. */
  until: Date
}

/**
 * How a lock stands; null: nobody has held it lately. Only for people to look at: it may be another's by the
 * time the answer arrives.
 *
 * @throws INVALID_NAME
 */
export async function readLock(
  db: Executor,
  name: string,
  options: TxOption = {},
): Promise<LockState | null> {
  assertReadableName('lock', name)
  const on = executorFor(db, options)
  const [row] = await runQuery<{ held: boolean; fence: string; until: unknown }>(
    on,
    sql`select l.until > clock_timestamp() as held, l.fence::text, l.until
      from ${on.tables.locks} l where l.name = ${name}::text`,
  )
  return row === undefined
    ? null
    : { name, held: row.held, fence: toNumber(row.fence), until: toDate(row.until) }
}
