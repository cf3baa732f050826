import type { Command } from 'commander'
import type { ClaimOptions, Held, Settled } from '../../client/queues.ts'
import { checkJson } from '../check-json.ts'
import { connect } from '../connection.ts'
import type { Cli, Io } from '../io.ts'
import { list, numberOrNone, wholeNumber } from '../options.ts'
import { jsonLine, printable } from '../printable.ts'
import { readText } from '../publish/read-lines.ts'
import { usageError } from '../usage-error.ts'
import { addDeadLetters } from './dead-letters.ts'
import { messageOf, withMessageOptions, type MessageFlags } from './message-options.ts'
import { count, done, plain, printAll, printFacts, type JsonFlag } from './report.ts'

/** The longest delay and lease that a server takes are its own affair; this only keeps nonsense out. */
const maxMs = 366 * 86_400_000

const examples = `
Examples:
  $ millrace queues send mails '{"to":"a@b.c"}' --type welcome
  $ millrace queues claim mails --wait-ms 30000 --json
  $ millrace queues ack mails 17 5f0c…      (the id and the lease of the claim)
  $ millrace queues dead mails
  $ millrace queues redrive mails`

/** `millrace queues list | show | configure | send | claim | ack | return | retry | extend | fail | dead | redrive | purge` */
export function addQueues(program: Command, cli: Cli): void {
  const queues = program
    .command('queues')
    .summary('send and work messages, and look after queues')
    .description('Sends, claims and settles messages, and looks after queues and dead letters.')
    .helpCommand(false)
    .addHelpText('after', examples)
  addList(queues, cli)
  addConfigure(queues, cli)
  addSend(queues, cli)
  addClaim(queues, cli)
  addSettles(queues, cli)
  addDeadLetters(queues, cli)
}

function addList(queues: Command, { io }: Cli): void {
  queues
    .command('list')
    .description('List the queues, with what is in them.')
    .option('--json', 'print each as a line of JSON')
    .action((flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const { queues: items, next } = await connect(io).queues({ cursor, signal: io.signal })
          return { items, next }
        },
        head: ['queue', 'ready', 'delayed', 'blocked', 'leased', 'dead', 'oldest ready'],
        row: ({ name, ready, delayed, blocked, leased, dead, oldestReadyAt }, style) => [
          printable(name),
          String(ready),
          String(delayed),
          String(blocked),
          String(leased),
          count(dead, style.red),
          plain(oldestReadyAt),
        ],
        none: 'There are no queues. The first message makes one: `millrace queues send --help`.',
      }),
    )
  queues
    .command('show')
    .alias('stats')
    .description('Show what is in a queue.')
    .argument('<queue>')
    .option('--json', 'print it as JSON')
    .action(async (queue: string, flags: JsonFlag) =>
      printFacts(io, flags, await connect(io).queue(queue).stats({ signal: io.signal })),
    )
}

function addConfigure(queues: Command, { io }: Cli): void {
  queues
    .command('configure')
    .description('Set what is to hold for a queue, making it if need be.')
    .argument('<queue>')
    .requiredOption(
      '--retain-finished-ms <ms>',
      'how long finished messages are kept; none: not at all',
      numberOrNone(1, 10 * maxMs),
    )
    .option('--json', 'print the result as JSON')
    .action(async (queue: string, { json, ...chosen }: JsonFlag & { retainFinishedMs: number | 'none' }) => {
      const retainFinishedMs = chosen.retainFinishedMs === 'none' ? null : chosen.retainFinishedMs
      await connect(io).queue(queue).configure({ retainFinishedMs }, { signal: io.signal })
      const kept = retainFinishedMs === null ? 'keeps no' : `keeps for ${retainFinishedMs} ms its`
      done(
        io,
        { ...(json && { json }) },
        { retainFinishedMs },
        (style) => `${style.bold(queue)} ${kept} finished messages`,
      )
    })
}

function addSend(queues: Command, { io }: Cli): void {
  const send = queues
    .command('send')
    .description('Send a message. The queue is made with its first.')
    .argument('<queue>')
    .argument('[data]', 'the data as JSON; - or nothing: from stdin')
  withMessageOptions(send)
    .option('--json', 'print the result as JSON')
    .action(async (queue: string, data: string | undefined, { json, ...flags }: JsonFlag & MessageFlags) => {
      const message = messageOf(flags, await dataOf(io, data))
      const sent = await connect(io).queue(queue).send(message, { signal: io.signal })
      const what = sent.duplicate ? 'was sent before' : 'sent'
      done(
        io,
        { ...(json && { json }) },
        sent,
        (style) => `${what} to ${style.bold(queue)} as ${style.bold(String(sent.id))}`,
      )
    })
}

/** The data of a command: its argument, or stdin. */
export async function dataOf(io: Io, data: string | undefined): Promise<string> {
  if (data === undefined && io.stdin.isTTY)
    throw usageError('the data is missing: give it as JSON, or by stdin')
  const text = data === undefined || data === '-' ? await readText(io) : data
  checkJson(text, 'data')
  return text
}

function addClaim(queues: Command, { io }: Cli): void {
  queues
    .command('claim')
    .description('Claim messages to work on; each comes with its lease.')
    .argument('<queue>')
    .option('-n, --limit <n>', 'at most so many (default 1)', wholeNumber(1, 1000), 1)
    .option('-t, --types <types>', 'only these types, with commas between', list)
    .option('--lease-ms <ms>', 'how long they are held (default: what each says)', wholeNumber(1, 86_400_000))
    .option('--wait-ms <ms>', 'how long to wait for one (default: not at all)', wholeNumber(0, 30_000))
    .option('--json', 'print each as a line of JSON')
    .action(async (queue: string, { json, ...chosen }: JsonFlag & ClaimOptions) => {
      const { messages } = await connect(io)
        .queue(queue)
        .claim({ ...chosen, signal: io.signal })
      return printAll(
        io,
        { ...(json && { json }) },
        {
          page: async () => ({ items: messages, next: null }),
          head: ['id', 'lease', 'attempt', 'type', 'key', 'data'],
          row: ({ id, lease, attempt, maxAttempts, type, key, dataText }) => [
            String(id),
            lease,
            `${attempt}/${maxAttempts}`,
            printable(plain(type)),
            printable(plain(key)),
            printable(jsonLine(dataText)),
          ],
          none: 'There is nothing to claim.',
        },
      )
    })
}

type SettleFlags = JsonFlag & { delayMs?: number; leaseMs?: number; error?: string; reason?: string }

function addSettles(queues: Command, cli: Cli): void {
  const settle = (name: string, description: string, run: Settle): Command =>
    queues
      .command(name)
      .description(description)
      .argument('<queue>')
      .argument('<id>', 'of the message', wholeNumber(0, Number.MAX_SAFE_INTEGER))
      .argument('<lease>', 'that the claim gave')
      .option('--json', 'print the result as JSON')
      .action(async (queue: string, id: number, lease: string, flags: SettleFlags) =>
        report(cli, flags, name, await run(cli.io, queue, { id, lease }, flags)),
      )
  settle('ack', 'Finish a message.', (io, queue, held) =>
    connect(io).queue(queue).ack([held], { signal: io.signal }),
  )
  settle('return', 'Give back what was not begun: no attempt is counted.', (io, queue, held) =>
    connect(io).queue(queue).giveBack([held], { signal: io.signal }),
  )
  settle('retry', 'Have a message tried again later.', (io, queue, held, { delayMs, error }) =>
    connect(io)
      .queue(queue)
      .retry(
        [{ ...held, ...(delayMs !== undefined && { delayMs }), ...(error !== undefined && { error }) }],
        {
          signal: io.signal,
        },
      ),
  )
    .option(
      '--delay-ms <ms>',
      "not before so many milliseconds (default: the message's backoff)",
      wholeNumber(0, maxMs),
    )
    .option('--error <text>', 'what went wrong, kept with the message')
  settle('extend', 'Hold a message for longer.', (io, queue, held, { leaseMs }) =>
    connect(io)
      .queue(queue)
      .extend([held], { ...(leaseMs !== undefined && { leaseMs }), signal: io.signal }),
  ).option('--lease-ms <ms>', 'from now on (default: what the message says)', wholeNumber(1, 86_400_000))
  settle('fail', 'Give a message up: it becomes a dead letter.', (io, queue, held, { reason = '' }) =>
    connect(io)
      .queue(queue)
      .fail([{ ...held, reason }], { signal: io.signal }),
  ).requiredOption('--reason <text>', 'why, kept with the dead letter')
}

type Settle = (io: Io, queue: string, held: Held, flags: SettleFlags) => Promise<Settled[]>

/** A lease that was lost is an answer, and a failure of the command. */
function report(cli: Cli, flags: JsonFlag, name: string, [settled]: Settled[]): void {
  if (settled === undefined) return
  const { id, held, dead } = settled
  if (!held) cli.exitCode = 1
  if (flags.json === true || held) {
    done(
      cli.io,
      flags,
      settled,
      () => `${name} ${id}${dead === true ? ': it was its last attempt, and it is dead' : ''}`,
    )
  } else {
    cli.io.stderr.write(
      `millrace: the lease of ${id} was lost: another has it since, and nothing was changed\n`,
    )
  }
}
