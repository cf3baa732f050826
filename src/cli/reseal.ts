import type { Command } from 'commander'
import type { Cli } from './io.ts'

const notes = `
To change the key under which webhook secrets are sealed: give every process the new one
in MILLRACE_ENCRYPTION_KEY and the old one in MILLRACE_PREVIOUS_ENCRYPTION_KEYS, restart
them, run this, and take the old one away. It works on DATABASE_URL in small steps, and
may be broken off and repeated.`

/** `millrace reseal` */
export function addReseal(program: Command, cli: Cli): void {
  program
    .command('reseal')
    .summary('seal webhook secrets anew under the current key')
    .description('Seals webhook secrets anew that lie in the database under an earlier key, or in the clear.')
    .addHelpText('after', notes)
    .action(async () => {
      // the drivers take a while to load, which the commands without a database need not wait for
      const { runReseal } = await import('./run-reseal.ts')
      cli.exitCode = await runReseal(cli.io)
    })
}
