import { sql, type SQL } from 'drizzle-orm'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Executor } from './port.ts'
import { runQuery } from './run.ts'
import { foreignDatabase } from './translate-error.ts'

/**
 * Whether the database belongs to the environment that this process was started for (W7), as a condition
 * for the statement that would do the work: no round trip of its own, and read once a statement. Both
 * unnamed counts as the same; a database without its row belongs to nobody.
 */
export function isOurs(on: Executor): SQL<boolean> {
  return sql`coalesce((
    select i.environment is not distinct from ${on.environment}::text from ${on.tables.installation} i), false)`
}

/**
 * Refuses a database of another environment, in one statement.
 *
 * @throws WRONG_ENVIRONMENT, naming both
 */
export async function assertOurs(db: Executor): Promise<void> {
  const { installation } = db.tables
  const [row] = await runQuery<{ environment: string | null }>(
    db,
    sql`select i.environment from ${installation} i`,
  )
  if (row !== undefined && row.environment === db.environment) return
  const database = row?.environment ?? null
  const names = `the database's is ${quoted(database)}, MILLRACE_ENVIRONMENT is ${quoted(db.environment)}`
  throw new MillraceError('WRONG_ENVIRONMENT', `${foreignDatabase}: ${names}`, {
    details: { database, process: db.environment },
  })
}

function quoted(name: string | null): string {
  return name === null ? 'not set' : `"${name}"`
}
