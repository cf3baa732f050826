import type { Command } from 'commander'
import { migrate } from '../db/migrate/migrate.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Cli, Io } from './io.ts'
import { createStyle } from './style.ts'
import { withDatabase } from './with-database.ts'

const notes = `
It works on DATABASE_URL (or DATABASE_URL_UNPOOLED, since it needs a session), in the
schema MILLRACE_SCHEMA. Any number of processes may run it at once: one does the work.`

/** `millrace migrate` */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .summary('create the tables, or bring them up to this version')
    .description('Creates the tables, or brings them up to this version.')
    .option('--dry-run', 'only tell what would be done')
    .addHelpText('after', notes)
    .action(({ dryRun = false }: { dryRun?: boolean }) => run(cli.io, dryRun))
}

async function run(io: Io, dryRun: boolean): Promise<void> {
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
