import { sql, type SQL } from 'drizzle-orm'
import type { Executor } from './port.ts'
import { translateError } from './translate-error.ts'

/** A schema-qualified name of one of our functions, procedures or tables, for a `sql` template. */
export function qualified(on: Executor, name: string): SQL {
  return sql`${sql.identifier(on.schema)}.${sql.identifier(name)}`
}

/**
 * Runs one raw statement and returns its rows. Raw rows differ between drivers (int8 is text on some,
 * a number on others), so the SQL casts, or the caller decodes with db/decode.ts.
 *
 * @throws MillraceError, translated from the driver's error
 */
export async function runQuery<Row extends object>(on: Executor, statement: SQL): Promise<Row[]> {
  const result: unknown = await translated(on.drizzle.execute(statement))
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown }).rows
  return (rows ?? []) as Row[]
}

/** Awaits a query of Drizzle's builder, translating a failure into a MillraceError. */
export async function translated<T>(query: PromiseLike<T>): Promise<T> {
  try {
    return await query
  } catch (error) {
    throw translateError(error)
  }
}
