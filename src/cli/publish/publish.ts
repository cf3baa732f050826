import type { Command } from 'commander'
import { connect } from '../connection.ts'
import type { Cli, Io } from '../io.ts'
import { checkJson } from '../check-json.ts'
import { pair, wholeNumber } from '../options.ts'
import { createStyle } from '../style.ts'
import { usageError } from '../usage-error.ts'
import { publishLines } from './publish-lines.ts'
import { readText } from './read-lines.ts'

interface PublishFlags {
  type?: string
  key?: string
  header?: Record<string, string>
  idempotencyKey?: string
  ndjson?: string
  fromLine?: number
  json?: boolean
}

const examples = `
Examples:
  $ millrace publish orders '{"id":"o_1","total":42}' --type order.created --key o_1
  $ echo '{"id":"o_1"}' | millrace publish orders --type order.paid
  $ millrace publish orders --ndjson events.ndjson

The data is kept byte for byte. A line of NDJSON is one event:
  {"type":"order.created","data":{"id":"o_1"},"key":"o_1","headers":{"trace":"abc"}}
Lines go in batches of at most 500, each stored whole or not at all. If it stops
half-way, it says at which line to go on; with --idempotency-key, running the same
file again publishes only what is missing.`

/** `millrace publish <stream> [data]` */
export function addPublish(program: Command, cli: Cli): void {
  program
    .command('publish')
    .summary('publish an event, or a file of them')
    .description(
      'Publishes an event to a stream, or many from NDJSON. The stream is made with its first event.',
    )
    .argument('<stream>', 'the name of the stream')
    .argument('[data]', 'the data as JSON; - or nothing: from stdin')
    .option('-t, --type <type>', 'what happened, such as order.created')
    .option('-k, --key <key>', 'what it is about: events of one key are delivered in order')
    .option('--header <name=value>', 'metadata that travels with the event; may be repeated', pair)
    .option('--idempotency-key <key>', 'a repeat with the same key within 24 hours publishes nothing new')
    .option('--ndjson <file>', 'publish each line of a file (-: of stdin) as an event')
    .option('--from-line <n>', 'with --ndjson: begin at this line', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples)
    .action((stream: string, data: string | undefined, flags: PublishFlags) =>
      flags.ndjson === undefined
        ? publishOne(cli.io, stream, data, flags)
        : publishFile(cli.io, stream, data, flags),
    )
}

async function publishOne(
  io: Io,
  stream: string,
  data: string | undefined,
  flags: PublishFlags,
): Promise<void> {
  const { type, key = null, header = null, idempotencyKey } = flags
  if (type === undefined) throw usageError('an event needs a type: add --type, such as --type order.created')
  if (flags.fromLine !== undefined) throw usageError('--from-line goes with --ndjson only')
  if (data === undefined && io.stdin.isTTY)
    throw usageError('the data is missing: give it as JSON, or by stdin')
  const dataText = data === undefined || data === '-' ? await readText(io) : data
  checkJson(dataText, 'data')
  const event = { type, dataText, key, headers: header }
  const { offset, replayed } = await connect(io)
    .stream(stream)
    .publish(event, { idempotencyKey, signal: io.signal })
  if (flags.json === true) {
    io.stdout.write(`${JSON.stringify({ offset, replayed })}\n`)
    return
  }
  const style = createStyle(io.stdout, io.env)
  const done = replayed ? 'was published before' : 'published'
  io.stdout.write(
    `${style.green('✓')} ${done} to ${style.bold(stream)} at offset ${style.bold(String(offset))}\n`,
  )
}

async function publishFile(
  io: Io,
  stream: string,
  data: string | undefined,
  flags: PublishFlags,
): Promise<void> {
  if (data !== undefined) throw usageError('with --ndjson the events come from the file: leave the data out')
  for (const name of ['type', 'key', 'header'] as const) {
    if (flags[name] !== undefined)
      throw usageError(`with --ndjson each line has its own ${name}: leave --${name} out`)
  }
  const { ndjson: file = '-', fromLine = 1, idempotencyKey } = flags
  const result = await publishLines(io, { stream, file, fromLine, idempotencyKey })
  if (flags.json === true) {
    io.stdout.write(`${JSON.stringify(result)}\n`)
    return
  }
  const style = createStyle(io.stdout, io.env)
  const { events, first, last } = result
  const range = first === null ? '' : ` (offsets ${first} to ${last})`
  io.stdout.write(
    `${style.green('✓')} published ${events} event${events === 1 ? '' : 's'} to ${style.bold(stream)}${range}\n`,
  )
}
