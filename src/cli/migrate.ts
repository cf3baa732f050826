import type { Command } from 'commander'
import type { Cli } from './io.ts'

const notes = `
It works on DATABASE_URL (or DATABASE_URL_UNPOOLED, since it needs a session), in the
schema MILLRACE_SCHEMA. Any number of processes may run it at once: one does the work.
It only ever adds, and deletes nothing. With --role, the role that Millrace runs as is
granted what it needs (what \`millrace grants\` prints).`

/** `millrace migrate` */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .summary('create the tables, or bring them up to this version')
    .description('Creates the tables, or brings them up to this version.')
    .option('--dry-run', 'print the plan, the grants included, and do nothing')
    .option('--role <role>', 'grant this role what running Millrace needs')
    .addHelpText('after', notes)
    .action(async ({ dryRun = false, role }: { dryRun?: boolean; role?: string }) => {
      // the drivers take a while to load, which the commands without a database need not wait for
      const { runMigrate } = await import('./run-migrate.ts')
      await runMigrate(cli.io, { dryRun, role })
    })
}
