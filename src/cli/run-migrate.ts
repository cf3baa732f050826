import { migrate, type Migrated } from '../db/migrate/migrate.ts'
import type { MigrationFile } from '../db/migrate/migration-file.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import { objectsOf } from '../db/migrate/objects.ts'
import type { Io } from './io.ts'
import { createStyle } from './style.ts'
import { withDatabase } from './with-database.ts'

/** What {@link runMigrate} takes. */
export interface MigrateFlags {
  dryRun: boolean
  /** The role to be granted what running Millrace needs. */
  role: string | undefined
}

/** Brings the tables up to this version, or tells what would be done. */
export async function runMigrate(io: Io, { dryRun, role }: MigrateFlags): Promise<void> {
  await withDatabase(io, 'millrace migrate', async ({ db, description }, settings) => {
    const files = await readMigrationFiles()
    const { environment } = settings
    const done = await migrate(db, { files, dryRun, environment, ...(role && { grantTo: role }) })
    const style = createStyle(io.stdout, io.env)
    const ok = dryRun ? '' : `${style.green('✓')} `
    if (dryRun)
      for (const [verb, what] of planOf(done, files))
        io.stdout.write(`${style.yellow(`would ${verb}`)} ${what}\n`)
    else for (const name of done.applied) io.stdout.write(`${style.green('applied')} ${name}\n`)
    const { applied, already, grants } = done
    io.stdout.write(
      applied.length === 0
        ? `${style.green('✓')} schema ${db.schema} is up to date (${already.length} migrations): ${description}\n`
        : `${ok}${applied.length} of ${files.length} migrations ${dryRun ? 'are missing in' : 'were applied to'} schema ${db.schema}: ${description}\n`,
    )
    if (grants !== undefined && !dryRun) io.stdout.write(`${ok}${role} has all that running Millrace needs\n`)
  })
}

type Step = ['apply' | 'grant', string]

/** Each migration with what it makes below it, then each grant. */
function planOf({ applied, grants = [] }: Migrated, files: readonly MigrationFile[]): Step[] {
  const made = (name: string): string => {
    const objects = objectsOf(files.filter((file) => file.name === name))
    const kinds = new Set(objects.map(({ kind }) => kind))
    const ofKind = (kind: string): string[] =>
      objects.filter((object) => object.kind === kind).map((object) => object.name)
    return Array.from(kinds, (kind) => `\n  ${kind} ${ofKind(kind).join(', ')}`).join('')
  }
  return [
    ...applied.map((name): Step => ['apply', `${name}${made(name)}`]),
    ...grants.map((statement): Step => ['grant', statement.replace(/^GRANT /, '')]),
  ]
}
