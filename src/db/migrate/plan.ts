import { MillraceError } from '../../errors/millrace-error.ts'
import { hashOf, type MigrationFile } from './migration-file.ts'

/** A row of the migrator's bookkeeping. */
export interface AppliedMigration {
  name: string
  hash: string
}

/** How the database stands to the files of this version. */
export interface MigrationState {
  /** Applied, and the same as the file. */
  already: string[]
  /** Not applied yet, in order. */
  missing: string[]
  /** Applied from a file that differed from this version's. */
  changed: string[]
  /** Applied by another, presumably newer version. */
  unknown: string[]
}

/** Compares the bookkeeping with the files. */
export async function compare(
  files: readonly MigrationFile[],
  applied: readonly AppliedMigration[],
): Promise<MigrationState> {
  const hashes = new Map(applied.map((row) => [row.name, row.hash]))
  const state: MigrationState = { already: [], missing: [], changed: [], unknown: [] }
  for (const file of files) {
    const hash = hashes.get(file.name)
    hashes.delete(file.name)
    if (hash === undefined) state.missing.push(file.name)
    else (hash === (await hashOf(file)) ? state.already : state.changed).push(file.name)
  }
  state.unknown.push(...hashes.keys())
  return state
}

/**
 * Refuses a database that this version's files do not lead to.
 *
 * @throws MIGRATION_CHANGED, NOT_MIGRATED
 */
export function assertCompatible(state: MigrationState, schema: string): void {
  if (state.changed.length > 0) {
    throw new MillraceError(
      'MIGRATION_CHANGED',
      `schema "${schema}" had ${state.changed.join(', ')} applied from a file that differs from this version's`,
      { details: { schema, changed: state.changed } },
    )
  }
  if (state.unknown.length > 0) {
    throw new MillraceError(
      'NOT_MIGRATED',
      `schema "${schema}" has ${state.unknown.join(', ')} applied, which this version does not know: a newer Millrace has migrated it, so run that version`,
      { details: { schema, unknown: state.unknown } },
    )
  }
}
