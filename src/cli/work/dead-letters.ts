import type { Command } from 'commander'
import { connect } from '../connection.ts'
import type { Cli } from '../io.ts'
import { wholeNumber } from '../options.ts'
import { jsonLine, printable } from '../printable.ts'
import { usageError } from '../usage-error.ts'
import { counted, done, plain, printAll, type JsonFlag } from './report.ts'

type ChoiceFlags = JsonFlag & { id?: number[]; all?: boolean }

const ids = (text: string, previous: number[] = []): number[] => [
  ...previous,
  wholeNumber(0, Number.MAX_SAFE_INTEGER)(text),
]

/** `millrace queues dead | redrive | purge` */
export function addDeadLetters(queues: Command, { io }: Cli): void {
  queues
    .command('dead')
    .description('List the dead letters of a queue, the oldest first.')
    .argument('<queue>')
    .option('--json', 'print each as a line of JSON')
    .action((queue: string, flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const from = cursor === undefined ? {} : { cursor: Number(cursor) }
          const { dead: items, next } = await connect(io)
            .queue(queue)
            .deadLetters({ ...from, signal: io.signal })
          return { items, next }
        },
        head: ['id', 'died', 'attempts', 'type', 'reason', 'data'],
        row: ({ id, diedAt, attempts, type, reason, dataText }) => [
          String(id),
          diedAt,
          String(attempts),
          printable(plain(type)),
          printable(reason),
          printable(jsonLine(dataText)),
        ],
        none: `There are no dead letters in ${queue}.`,
      }),
    )
  queues
    .command('redrive')
    .description('Send dead letters again: all, or those named.')
    .argument('<queue>')
    .option('--id <id>', 'only this one; may be repeated', ids)
    .option('--json', 'print the result as JSON')
    .action(async (queue: string, flags: ChoiceFlags) => {
      const redriven = await connect(io)
        .queue(queue)
        .redrive({ ...(flags.id && { ids: flags.id }), signal: io.signal })
      done(io, flags, { redriven }, () => `sent ${counted(redriven.length, 'dead letter')} again`)
    })
  queues
    .command('purge')
    .description('Delete dead letters for good.')
    .argument('<queue>')
    .option('--id <id>', 'only this one; may be repeated', ids)
    .option('--all', 'all of the queue')
    .option('--json', 'print the result as JSON')
    .action(async (queue: string, flags: ChoiceFlags) => {
      if ((flags.id === undefined) === (flags.all !== true))
        throw usageError('say which dead letters go: --id, or --all')
      const deleted = await connect(io)
        .queue(queue)
        .purge({ ...(flags.id && { ids: flags.id }), signal: io.signal })
      done(io, flags, { deleted }, () => `deleted ${counted(deleted, 'dead letter')}`)
    })
}
