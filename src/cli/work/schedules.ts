import type { Command } from 'commander'
import type { Schedule } from '../../client/schedules.ts'
import { connect } from '../connection.ts'
import type { Cli, Io } from '../io.ts'
import { oneOf, wholeNumber } from '../options.ts'
import { printable } from '../printable.ts'
import type { Style } from '../style.ts'
import { usageError } from '../usage-error.ts'
import { dataOf } from './queues.ts'
import { done, plain, printAll, printFacts, type JsonFlag } from './report.ts'

const examples = `
Examples:
  $ millrace schedules put nightly '{}' --queue reports --cron '0 3 * * *' --time-zone Europe/Berlin
  $ millrace schedules put pulse null --stream ticks --type tick --every-ms 60000
  $ millrace schedules run nightly`

/** `millrace schedules put | list | show | pause | resume | run | delete` */
export function addSchedules(program: Command, { io }: Cli): void {
  const schedules = program
    .command('schedules')
    .summary('put, list, pause, resume, run and delete schedules')
    .description('Puts, lists, pauses, resumes, runs and deletes schedules.')
    .helpCommand(false)
    .addHelpText('after', examples)
  addPut(schedules, io)
  schedules
    .command('list')
    .description('List the schedules, with when each fires next.')
    .option('--json', 'print each as a line of JSON')
    .action((flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const { schedules: items, next } = await connect(io).schedules.list({ cursor, signal: io.signal })
          return { items, next }
        },
        head: ['name', 'when', 'target', 'state', 'next', 'failures'],
        row,
        none: 'There are no schedules. `millrace schedules put --help` tells how to make one.',
      }),
    )
  schedules
    .command('show')
    .description('Show a schedule.')
    .argument('<name>')
    .option('--json', 'print it as JSON')
    .action(async (name: string, flags: JsonFlag) =>
      printFacts(io, flags, await connect(io).schedules.get(name, { signal: io.signal })),
    )
  addActions(schedules, io)
}

type PutFlags = JsonFlag & {
  queue?: string
  stream?: string
  cron?: string
  timeZone?: string
  everyMs?: number
  catchUp?: 'all' | 'last' | 'none'
  type?: string
  key?: string
}

function addPut(schedules: Command, io: Io): void {
  schedules
    .command('put')
    .description('Create a schedule, or change it.')
    .argument('<name>')
    .argument('[data]', 'the data of each message as JSON; - or nothing: from stdin')
    .option('--queue <queue>', 'send to this queue')
    .option('--stream <stream>', 'or publish to this stream')
    .option('--cron <cron>', 'five fields, or six with seconds first')
    .option('--time-zone <zone>', 'in which the cron is read (default UTC)')
    .option(
      '--every-ms <ms>',
      'instead of a cron: every so many milliseconds',
      wholeNumber(100, 31_536_000_000),
    )
    .option(
      '--catch-up <policy>',
      'what becomes of missed ones: all, last (default) or none',
      oneOf('all', 'last', 'none'),
    )
    .option('-t, --type <type>', 'of each message')
    .option('-k, --key <key>', 'of each message')
    .option('--json', 'print it as JSON')
    .action(async (name: string, data: string | undefined, flags: PutFlags) => {
      const { json: _, queue, stream, ...rest } = flags
      if ((queue === undefined) === (stream === undefined))
        throw usageError('say where it sends: --queue or --stream, one of both')
      const target =
        queue === undefined
          ? { kind: 'stream' as const, name: stream ?? '' }
          : { kind: 'queue' as const, name: queue }
      const input = { ...rest, target, dataText: await dataOf(io, data) }
      const schedule = await connect(io).schedules.put(name, input, { signal: io.signal })
      done(io, flags, schedule, (style) => `put ${style.bold(name)}: fires next at ${plain(schedule.nextAt)}`)
    })
}

function addActions(schedules: Command, io: Io): void {
  const action = (
    name: string,
    description: string,
    run: (of: string, flags: JsonFlag) => Promise<void>,
  ): void =>
    void schedules
      .command(name)
      .description(description)
      .argument('<name>')
      .option('--json', 'print the result as JSON')
      .action(run)
  const { signal } = io
  action(
    'pause',
    'Stop a schedule from firing. What falls into the pause does not fire.',
    async (name, flags) =>
      done(io, flags, await connect(io).schedules.pause(name, { signal }), () => `paused ${name}`),
  )
  action('resume', 'Let it fire again, from the first boundary after now.', async (name, flags) => {
    const schedule = await connect(io).schedules.resume(name, { signal })
    done(io, flags, schedule, () => `resumed ${name}: fires next at ${plain(schedule.nextAt)}`)
  })
  action('run', 'Send its message once, now.', async (name, flags) => {
    const ran = await connect(io).schedules.runNow(name, { signal })
    done(io, flags, ran, () => `sent the message of ${name} as ${ran.number}`)
  })
  action('delete', 'Delete it. What it has sent stays.', async (name, flags) => {
    await connect(io).schedules.delete(name, { signal })
    done(io, flags, { deleted: true }, () => `deleted ${name}`)
  })
}

function row(schedule: Schedule, style: Style): string[] {
  const { name, cron, timeZone, everyMs, target, paused, nextAt, failures } = schedule
  return [
    printable(name),
    cron === null ? `every ${everyMs} ms` : `${cron} ${timeZone}`,
    `${target.kind} ${printable(target.name)}`,
    paused ? style.yellow('paused') : style.green('active'),
    plain(nextAt),
    failures > 0 ? style.red(String(failures)) : '0',
  ]
}
