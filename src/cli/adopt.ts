import type { Command } from 'commander'
import type { Cli } from './io.ts'

const notes = `
A branch or a restored copy of a database has the webhooks, due retries, schedules and
leased work of its original. Until it is adopted, processes that name another environment
in MILLRACE_ENVIRONMENT deliver, fire and claim nothing there.

It works on DATABASE_URL, in one transaction: the database gets the name and a new
installation id (so webhook ids differ from the original's), every lease ends, and active
webhooks are paused. Look at them (\`millrace webhooks list\`) before you resume any.

For the original, which has no name yet or is to be renamed:
  $ millrace adopt --environment production --keep-identity`

/** The options of `millrace adopt`. */
export interface AdoptFlags {
  environment: string
  keepWebhooks?: boolean
  keepIdentity?: boolean
  again?: boolean
  dryRun?: boolean
}

/** `millrace adopt` */
export function addAdopt(program: Command, cli: Cli): void {
  program
    .command('adopt')
    .summary('make a branch or a copy the own of an environment')
    .description('Makes a branch or a restored copy of a database the own of an environment.')
    .requiredOption('--environment <name>', 'the environment that the database is to belong to')
    .option('--keep-webhooks', 'leave active webhooks active: they deliver to the same endpoints')
    .option('--keep-identity', 'only give the name: installation id, leases and webhooks stay')
    .option('--again', 'also when the database bears the name already')
    .option('--dry-run', 'only tell what would be done')
    .addHelpText('after', notes)
    .action(async (flags: AdoptFlags) => {
      // the drivers take a while to load, which the commands without a database need not wait for
      const { runAdopt } = await import('./run-adopt.ts')
      await runAdopt(cli.io, flags)
    })
}
