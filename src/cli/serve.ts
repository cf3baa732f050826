import type { Command } from 'commander'
import type { Cli } from './io.ts'
import { wholeNumber } from './options.ts'

const notes = `
Settings:
  DATABASE_URL, MILLRACE_ROOT_KEY        needed; make the tables first: millrace migrate
  DATABASE_URL_UNPOOLED                  the direct address, for LISTEN (derived on Neon)
  MILLRACE_ENCRYPTION_KEY                seals webhook secrets in the database
  MILLRACE_DOORBELL_URL, …_SECRET        rung after each publish, for a forwarder elsewhere
  MILLRACE_SLEEP=1                       beside a forwarder that has it: else the LISTEN of this
                                         process keeps the database awake
  MILLRACE_LOG_LEVEL                     debug, info (default), warn or error

It logs lines of JSON. SIGTERM lets requests finish, for 8 seconds at most.

Examples:
  $ millrace serve
      only the API; webhooks are delivered by \`millrace forward\`, here or elsewhere
  $ millrace serve --deliver
      all that one machine needs`

/** `millrace serve` */
export function addServe(program: Command, cli: Cli): void {
  program
    .command('serve')
    .summary('run the HTTP API, and with --deliver all of it')
    .description('Runs the HTTP API: publish, read, webhooks, queues, schedules, locks.')
    .option('-p, --port <port>', 'where it answers (default: PORT, or 8787)', wholeNumber(0, 65_535))
    .option('--host <address>', 'at which address (default: 0.0.0.0, from everywhere)')
    .option('--deliver', 'deliver webhooks and fire schedules in this process too')
    .addHelpText('after', notes)
    .action(async (flags: { port?: number; host?: string; deliver?: boolean }) => {
      const { runServe } = await import('./run-processes.ts')
      await runServe(cli.io, flags)
    })
}
