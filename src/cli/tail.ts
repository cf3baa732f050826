import type { Command } from 'commander'
import type { StreamClient } from '../client/streams.ts'
import type { ReadEvent } from '../client/types.ts'
import { connect } from './connection.ts'
import { explainError } from './explain-error.ts'
import type { Cli, Io } from './io.ts'
import { list, position, wholeNumber } from './options.ts'
import { jsonLine, printable, timeOfDay } from './printable.ts'
import { createStyle, type Style } from './style.ts'

interface TailFlags {
  from?: 'start' | 'now' | number
  types?: string[]
  follow?: boolean
  count?: number
  json?: boolean
}

const examples = `
Examples:
  $ millrace tail orders                       what is published from now on
  $ millrace tail orders --from start          everything, then what comes
  $ millrace tail orders --from 1200 --types 'order.*,refund.created'
  $ millrace tail orders --json | jq .data     one JSON object a line, data as published

On a terminal it follows the stream until Ctrl-C, also across restarts of the server;
into a pipe it prints what is there and ends, unless --follow is given.`

/** Pages of this size keep a stream that is read from the start moving. */
const pageSize = 500

/** `millrace tail <stream>` */
export function addTail(program: Command, cli: Cli): void {
  program
    .command('tail')
    .summary('print the events of a stream as they come')
    .description('Prints the events of a stream: offset, time (UTC), type, key and data.')
    .argument('<stream>', 'the name of the stream')
    .option(
      '-f, --from <position>',
      'start, now, or the offset after which to begin (default: now when it follows, else start)',
      position,
    )
    .option(
      '-t, --types <types>',
      'only these types, with commas between; * at the end matches any rest',
      list,
    )
    .option('--follow', 'go on with what comes (default on a terminal)')
    .option('--no-follow', 'end with what is there')
    .option('-n, --count <n>', 'end after so many events', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'print each event as a line of JSON')
    .addHelpText('after', examples)
    .action((stream: string, flags: TailFlags) => tail(cli.io, stream, flags))
}

async function tail(io: Io, name: string, flags: TailFlags): Promise<void> {
  const follows = flags.follow ?? io.stdout.isTTY
  const stream = connect(io).stream(name)
  try {
    await printEvents(io, flags, follows ? await following(io, stream, flags) : present(io, stream, flags))
  } catch (error) {
    // Ctrl-C is how this command ends
    if (!io.signal.aborted) throw error
  }
}

async function printEvents(io: Io, flags: TailFlags, events: AsyncIterable<ReadEvent>): Promise<void> {
  const style = createStyle(io.stdout, io.env)
  const print = flags.json === true ? eventJson : (event: ReadEvent) => eventLine(event, style)
  let left = flags.count ?? Number.POSITIVE_INFINITY
  for await (const event of events) {
    if (io.signal.aborted) return
    io.stdout.write(`${print(event)}\n`)
    await io.stdout.drained()
    left -= 1
    if (left === 0) return
  }
}

async function following(io: Io, stream: StreamClient, flags: TailFlags): Promise<AsyncIterable<ReadEvent>> {
  const { from = 'now', types } = flags
  const after = from === 'now' ? await stream.head({ signal: io.signal }) : startOf(from)
  const style = createStyle(io.stderr, io.env)
  const say = (text: string): void => io.stderr.write(`${style.dim(text)}\n`)
  if (io.stderr.isTTY) {
    say(
      `Following ${stream.name} after offset ${after}${from === 'now' ? ' (--from start for all)' : ''}. Ctrl-C ends.`,
    )
  }
  return stream.follow({
    after,
    types,
    limit: pageSize,
    signal: io.signal,
    onInterrupted: (error) => say(`${explainError(error, io)} — trying again …`),
    onResumed: () => say('The server answers again.'),
  })
}

/** What is there when it is asked for, and no more: a busy stream must not keep this going. */
async function* present(
  io: Io,
  stream: StreamClient,
  flags: TailFlags,
): AsyncGenerator<ReadEvent, void, undefined> {
  const { from = 'start', types } = flags
  const { signal } = io
  const end = await stream.head({ signal })
  let after = from === 'now' ? end : startOf(from)
  // only the server knows whether that lies beyond everything: it refuses such a read
  if (after > end) await stream.read({ after, limit: 1, signal })
  let last = -1
  let found = false
  while (after < end && after > last) {
    const page = await stream.read({ after, types, limit: pageSize, signal })
    for (const event of page.events) {
      if (event.offset > end) return
      found = true
      yield event
    }
    last = after
    after = page.next
  }
  if (!found && !(await stream.exists({ signal }))) {
    io.stderr.write(`There is no stream ${stream.name}: it begins with its first event.\n`)
  }
}

function startOf(from: 'start' | number): number {
  return from === 'start' ? 0 : from
}

function eventLine(event: ReadEvent, style: Style): string {
  const key = event.key === null ? '' : ` ${style.yellow(`key=${printable(event.key)}`)}`
  const parts = [
    style.dim(String(event.offset).padStart(8)),
    style.dim(timeOfDay(event.publishedAt)),
    `${style.cyan(printable(event.type))}${key}`,
    printable(jsonLine(event.dataText)),
  ]
  return parts.join('  ')
}

function eventJson(event: ReadEvent): string {
  const { offset, type, key, headers, publishedAt, dataText } = event
  const rest = JSON.stringify({ headers, publishedAt }).slice(1)
  return `${JSON.stringify({ offset, type, key }).slice(0, -1)},"data":${jsonLine(dataText)},${rest}`
}
