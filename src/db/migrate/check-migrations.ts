import { sql } from 'drizzle-orm'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { Executor } from '../port.ts'
import { qualified, runQuery } from '../run.ts'
import type { MigrationFile } from './migration-file.ts'
import { assertComplete, lackingObjects, objectsOf } from './objects.ts'
import { assertCompatible, compare, type AppliedMigration, type MigrationState } from './plan.ts'

/** How a database stands to this version. */
export interface CheckedMigrations extends MigrationState {
  /** What the applied migrations have made and is not there any more, such as `table offsets`. */
  lacking: string[]
}

/**
 * Compares a database with the migrations of this version, by plain reads, so on every driver and with
 * any role that may read the bookkeeping. It changes nothing. A database without the schema has everything
 * missing.
 *
 * @throws PERMISSION_DENIED when the role may not look
 */
export async function checkMigrations(
  db: Executor,
  files: readonly MigrationFile[],
): Promise<CheckedMigrations> {
  const [found] = await runQuery<{ found: boolean }>(
    db,
    sql`select pg_catalog.to_regclass(${`"${db.schema}"."migrations"`}::text) is not null as found`,
  )
  const applied =
    found?.found === true
      ? await runQuery<AppliedMigration>(
          db,
          sql`select name, hash from ${qualified(db, 'migrations')} order by name`,
        )
      : []
  const state = await compare(files, applied)
  const done = files.filter((file) => !state.missing.includes(file.name))
  return { ...state, lacking: await lackingObjects(db, objectsOf(done)) }
}

/**
 * Refuses to work on a database that is not exactly at this version.
 *
 * @throws NOT_MIGRATED, MIGRATION_CHANGED
 */
export async function assertMigrated(db: Executor, files: readonly MigrationFile[]): Promise<void> {
  const state = await checkMigrations(db, files)
  assertCompatible(state, db.schema)
  assertComplete(state.lacking, db.schema)
  if (state.missing.length === 0) return
  throw new MillraceError(
    'NOT_MIGRATED',
    `schema "${db.schema}" lacks ${state.missing.join(', ')}: run \`millrace migrate\``,
    { details: { schema: db.schema, missing: state.missing } },
  )
}
