import type { Command } from 'commander'
import type { Cli } from './io.ts'

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
    .action(async ({ dryRun = false }: { dryRun?: boolean }) => {
      // the drivers take a while to load, which the commands without a database need not wait for
      const { runMigrate } = await import('./run-migrate.ts')
      await runMigrate(cli.io, dryRun)
    })
}
