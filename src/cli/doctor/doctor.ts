import type { Command } from 'commander'
import type { Cli } from '../io.ts'

const notes = `
It looks at the server (MILLRACE_URL) and at the database (DATABASE_URL): connection,
version, migrations, identity, clocks, whether wakes arrive, and who holds streams
back. It changes nothing. The exit code is 1 when something does not work.`

/** `millrace doctor` */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command('doctor')
    .summary('look whether everything works, and say what does not')
    .description('Looks whether everything works, and says what does not.')
    .option('--json', 'print each finding as a line of JSON')
    .addHelpText('after', notes)
    .action(async ({ json = false }: { json?: boolean }) => {
      // as for migrate: the drivers take a while to load
      const { runDoctor } = await import('./run-doctor.ts')
      await runDoctor(cli, json)
    })
}
