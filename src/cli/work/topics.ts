import type { Command } from 'commander'
import { connect } from '../connection.ts'
import type { Cli } from '../io.ts'
import { printable } from '../printable.ts'
import { messageOf, withMessageOptions, type MessageFlags } from './message-options.ts'
import { dataOf } from './queues.ts'
import { counted, done, printAll, type JsonFlag } from './report.ts'

/** `millrace topics list | show | bind | unbind | publish` */
export function addTopics(program: Command, { io }: Cli): void {
  const topics = program
    .command('topics')
    .summary('bind queues to topics, and publish to all of them')
    .description('Binds queues to topics, and publishes to every queue that is bound.')
    .helpCommand(false)
  topics
    .command('list')
    .description('List the topics that queues are bound to.')
    .option('--json', 'print each as a line of JSON')
    .action((flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const { topics: items, next } = await connect(io).topics({ cursor, signal: io.signal })
          return { items, next }
        },
        head: ['topic', 'queues'],
        row: ({ topic, queues }) => [printable(topic), String(queues)],
        none: 'No queue is bound to a topic. `millrace topics bind --help` tells how.',
      }),
    )
  topics
    .command('show')
    .description('List the queues that are bound to a topic.')
    .argument('<topic>')
    .option('--json', 'print each as a line of JSON')
    .action((topic: string, flags: JsonFlag) =>
      printAll(io, flags, {
        async page(cursor) {
          const { queues, next } = await connect(io).topic(topic).queues({ cursor, signal: io.signal })
          return { items: queues.map((queue) => ({ queue })), next }
        },
        head: ['queue'],
        row: ({ queue }) => [printable(queue)],
        none: `No queue is bound to ${topic}.`,
      }),
    )
  addBindings(topics, { io })
  const publish = topics
    .command('publish')
    .description('Send a message to every queue that is bound to a topic.')
    .argument('<topic>')
    .argument('[data]', 'the data as JSON; - or nothing: from stdin')
  withMessageOptions(publish)
    .option('--json', 'print the result as JSON')
    .action(async (topic: string, data: string | undefined, { json, ...flags }: JsonFlag & MessageFlags) => {
      const message = messageOf(flags, await dataOf(io, data))
      const result = await connect(io).topic(topic).publish([message], { signal: io.signal })
      done(io, { ...(json && { json }) }, result, () => `sent to ${counted(result.queues, 'queue')}`)
    })
}

function addBindings(topics: Command, { io }: Pick<Cli, 'io'>): void {
  topics
    .command('bind')
    .description('Have a queue receive what is published to a topic from now on.')
    .argument('<topic>')
    .argument('<queue>', 'made if there is none of the name')
    .option('--json', 'print the result as JSON')
    .action(async (topic: string, queue: string, flags: JsonFlag) => {
      const bound = await connect(io).topic(topic).bind(queue, { signal: io.signal })
      done(io, flags, { bound }, () => `${queue} ${bound ? 'is' : 'was already'} bound to ${topic}`)
    })
  topics
    .command('unbind')
    .description('End a binding. What was sent before stays in the queue.')
    .argument('<topic>')
    .argument('<queue>')
    .option('--json', 'print the result as JSON')
    .action(async (topic: string, queue: string, flags: JsonFlag) => {
      await connect(io).topic(topic).unbind(queue, { signal: io.signal })
      done(io, flags, { unbound: true }, () => `${queue} is no longer bound to ${topic}`)
    })
}
