import type { Command } from 'commander'
import type { Cli } from './io.ts'

const notes = `
Give them to the role that serves, forwards and delivers; migrating stays with the role
that owns the tables:
  $ millrace grants --role app | psql "$DATABASE_URL"
  $ DATABASE_URL=postgres://app@… millrace grants --check

It can then do all that Millrace does while it runs, and nothing else: it makes, changes
and drops no table, and events come and go by Millrace's functions only. Grant again after
an upgrade: to grant twice is to grant once. For doctor to show the statements of others
who hold a stream back, the role must be a member of pg_read_all_stats.`

interface GrantsFlags {
  role?: string
  schema?: string
  check?: boolean
}

/** `millrace grants --role <role>` */
export function addGrants(program: Command, cli: Cli): void {
  program
    .command('grants')
    .summary('print what a least-privilege role must be granted, or check it')
    .description('Prints the GRANTs for a role that runs Millrace and may do nothing else.')
    .option('--role <role>', 'the role; with --check by default the one of DATABASE_URL')
    .option('--schema <schema>', 'the schema that holds Millrace (default: MILLRACE_SCHEMA, or millrace)')
    .option('--check', 'say what the role lacks, at the database itself; exit code 1 if anything')
    .addHelpText('after', notes)
    .action(async (flags: GrantsFlags) => {
      // as for migrate: what knows the tables takes a while to load
      const { checkGrants, printGrants } = await import('./run-grants.ts')
      await (flags.check === true ? checkGrants(cli, flags) : printGrants(cli.io, flags))
    })
}
