import type { Command } from 'commander'
import type { Cli } from './io.ts'
import { wholeNumber } from './options.ts'

const notes = `
For a first look and for development: it makes its tables itself, listens on loopback
only, and takes http and private webhook targets. Without DATABASE_URL it starts the
embedded Postgres in MILLRACE_DATA_DIR (default: .millrace), which keeps the data and
the keys. Ctrl-C stops everything.`

/** `millrace dev` */
export function addDev(program: Command, cli: Cli): void {
  program
    .command('dev')
    .summary('run everything in one process, on an embedded database')
    .description('Runs everything in one process: database, HTTP API, delivery and schedules.')
    .option('-p, --port <port>', 'where the API answers (default: PORT, or 8787)', wholeNumber(0, 65_535))
    .addHelpText('after', notes)
    .action(async (flags: { port?: number }) => {
      const { runDev } = await import('./run-processes.ts')
      await runDev(cli.io, flags)
    })
}
