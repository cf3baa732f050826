import { Command } from 'commander'
import { addAdopt } from './adopt.ts'
import { addDev } from './dev.ts'
import { addDoctor } from './doctor/doctor.ts'
import { addForward } from './forward.ts'
import { addGrants } from './grants.ts'
import type { Cli } from './io.ts'
import { addListen } from './listen/listen.ts'
import { addMigrate } from './migrate.ts'
import { packageVersion } from '../node/package-version.ts'
import { addPublish } from './publish/publish.ts'
import { addReseal } from './reseal.ts'
import { addRing } from './ring.ts'
import { addServe } from './serve.ts'
import { hasColors, createStyle } from './style.ts'
import { addTail } from './tail.ts'
import { addWebhooks } from './webhooks.ts'
import { addKeys } from './work/keys.ts'
import { addLocks } from './work/locks.ts'
import { addNotify } from './work/notify.ts'
import { addQueues } from './work/queues.ts'
import { addSchedules } from './work/schedules.ts'
import { addTopics } from './work/topics.ts'

const settingsHelp = `
Settings:
  MILLRACE_URL       where the server answers (default: http://localhost:8787)
  MILLRACE_KEY       its API key (default: the key that a server started in this
                     folder has left in .millrace/root-key)
  MILLRACE_DATA_DIR  that data folder, if it is another
  DATABASE_URL       the database, for all but the commands beside a server (dev,
                     migrate, adopt, reseal and doctor: default is the embedded one)
  NO_COLOR           no colours

Try it (with \`millrace dev\` running in this folder):
  $ millrace listen --stream orders
  $ millrace publish orders '{"total":42}' --type order.created --key order-1
  $ millrace tail orders --from start`

/** The whole command line. Nothing runs, and nothing is printed, before it is parsed. */
export function createProgram(cli: Cli): Command {
  const program = new Command('millrace')
    .description('Durable event streams in your own Postgres, delivered as signed webhooks.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help; after a command, its own')
    .exitOverride()
  dress(program, cli)
  program.commandsGroup('Run it:')
  addDev(program, cli)
  addServe(program, cli)
  addForward(program, cli)
  program.commandsGroup('Beside a running server:')
  addPublish(program, cli)
  addTail(program, cli)
  addListen(program, cli)
  addWebhooks(program, cli)
  addQueues(program, cli)
  addTopics(program, cli)
  addLocks(program, cli)
  addSchedules(program, cli)
  addNotify(program, cli)
  addKeys(program, cli)
  addRing(program, cli)
  program.commandsGroup('With the database itself:')
  addMigrate(program, cli)
  addGrants(program, cli)
  addAdopt(program, cli)
  addReseal(program, cli)
  addDoctor(program, cli)
  program.addHelpCommand(
    new Command('help').argument('[command]').description('print the help of a command').helpGroup('More:'),
  )
  return program.addHelpText('after', settingsHelp)
}

/** Output goes where `io` says; errors are printed by runCli alone. */
function dress(program: Command, { io }: Cli): void {
  const style = createStyle(io.stdout, io.env)
  program
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => Math.min(io.stdout.columns, 100),
      getOutHasColors: () => hasColors(io.stdout, io.env),
    })
    .configureHelp({
      styleTitle: (text) => style.bold(text),
      styleCommandText: (text) => style.cyan(text),
      styleSubcommandTerm: (text) => style.cyan(text),
      styleOptionTerm: (text) => style.cyan(text),
    })
}
