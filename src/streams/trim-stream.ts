import { sql, type SQL } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { assertNoBatch } from '../db/batch.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertReadableName } from '../schema/names.ts'

/** Rows a statement deletes: short enough that locks and the log stay small, and publishers notice nothing. */
const stepRows = 5_000

/**
 * Deletes the events of a stream up to an offset, in steps; wakes nobody (S4). Offsets of the rest, and saved
 * offsets, stay as they are. Returns how many it deleted.
 *
 * @param through delete what has this offset or less; negative: nothing
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function trimStream(
  db: Db,
  stream: string,
  through: number,
  options: TxOption = {},
): Promise<number> {
  assertReadableName('stream', stream)
  if (!Number.isSafeInteger(through)) throw invalidInput('through', 'must be a whole number')
  if (through <= 0) return 0
  const on = executorFor(db, options)
  assertNoBatch(on, 'a trim')
  let deleted = 0
  for (;;) {
    const step = await trimStep(on, { stream, through, rows: stepRows })
    deleted += step
    if (step < stepRows) return deleted
  }
}

/**
 * One step of a trim, the lowest offsets first; rows that another trim is deleting are left to it.
 *
 * @param step.bound beside `through`, what is above this stays too; null: no such bound
 */
export async function trimStep(
  on: Executor,
  step: { stream: string; through: number; rows: number; bound?: SQL },
): Promise<number> {
  const { stream, through, rows, bound = sql`null` } = step
  const { streams } = on.tables
  const [row] = await runQuery<{ deleted: string }>(
    on,
    sql`select ${qualified(on, 'trim_events')}(s.name, least(${through}::bigint, ${bound}), ${rows}::integer)::text
      as deleted from ${streams} s where s.name = ${stream}::text`,
  )
  return row === undefined ? 0 : toNumber(row.deleted)
}
