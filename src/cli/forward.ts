import type { Command } from 'commander'
import type { Cli } from './io.ts'

const notes = `
Settings:
  DATABASE_URL                           needed; make the tables first: millrace migrate
  DATABASE_URL_UNPOOLED                  the direct address, for LISTEN (derived on Neon)
  MILLRACE_ENCRYPTION_KEY                the one that webhook secrets are sealed with
  MILLRACE_LISTEN=0                      no LISTEN (a transaction-mode pooler): poll
  MILLRACE_POLL_MIN_MS, …_MAX_MS         how often it then looks (1000, idle up to 60000)
  MILLRACE_SLEEP=1                       let a database that nobody uses sleep …
  MILLRACE_SLEEP_AFTER_MS                … after so long with nothing to do (60000),
  MILLRACE_SLEEP_MAX_MS                  … and look at least this often (3600000)
  MILLRACE_DOORBELL_SECRET               be woken by \`millrace ring\` and by the edge app
  MILLRACE_DOORBELL_PORT, …_HOST         where the doorbell is (8790 at 127.0.0.1), with
                                         /healthz, /readyz and, with MILLRACE_ROOT_KEY, /metrics
  MILLRACE_LOG_LEVEL                     debug, info (default), warn or error

It logs lines of JSON. Several may run on one database. SIGTERM lets what is being sent
finish, for 8 seconds at most, and gives the leases back.`

/** `millrace forward` */
export function addForward(program: Command, cli: Cli): void {
  program
    .command('forward')
    .summary('deliver webhooks and fire schedules')
    .description('The worker for a VM: holds one LISTEN connection, delivers webhooks and fires schedules.')
    .addHelpText('after', notes)
    .action(async () => {
      const { runForward } = await import('./run-processes.ts')
      await runForward(cli.io)
    })
}
