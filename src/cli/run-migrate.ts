import { migrate } from '../db/migrate/migrate.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Io } from './io.ts'
import { createStyle } from './style.ts'
import { withDatabase } from './with-database.ts'

/** Brings the tables up to this version, or tells what would be done. */
export async function runMigrate(io: Io, dryRun: boolean): Promise<void> {
  await withDatabase(io, 'millrace migrate', async ({ db, description }, settings) => {
    const files = await readMigrationFiles()
    const { applied, already } = await migrate(db, { files, dryRun, environment: settings.environment })
    const style = createStyle(io.stdout, io.env)
    const mark = dryRun ? style.yellow('would apply') : style.green('applied')
    for (const name of applied) io.stdout.write(`${mark} ${name}\n`)
    io.stdout.write(
      applied.length === 0
        ? `${style.green('✓')} schema ${db.schema} is up to date (${already.length} migrations): ${description}\n`
        : `${dryRun ? '' : `${style.green('✓')} `}${applied.length} of ${files.length} migrations ${dryRun ? 'are missing in' : 'were applied to'} schema ${db.schema}: ${description}\n`,
    )
  })
}
