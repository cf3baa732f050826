import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import type { Webhook, WebhookInput } from '../client/types.ts'
import { connect } from './connection.ts'
import type { Cli, Io } from './io.ts'
import { list, oneOf, pair, position, wholeNumber } from './options.ts'
import { printable } from './printable.ts'
import { createStyle, type Style } from './style.ts'
import { table } from './table.ts'
import { addWebhookActions } from './webhook-actions.ts'

interface JsonFlag {
  json?: boolean
}

const examples = `
Examples:
  $ millrace webhooks create orders https://example.com/hooks --types 'order.*'
  $ millrace webhooks list
  $ millrace webhooks show wh_…
  $ millrace webhooks deliveries wh_… --state dead
  $ millrace webhooks redrive wh_… --since 2026-01-15T12:00:00Z`

/** `millrace webhooks …` */
export function addWebhooks(program: Command, cli: Cli): void {
  const webhooks = program
    .command('webhooks')
    .summary('list, create and operate webhooks')
    .description('Lists, creates, shows, operates and deletes webhooks at the server.')
    .helpCommand(false)
    .addHelpText('after', examples)
  webhooks
    .command('list')
    .description('List webhooks, with how far each has come.')
    .option('-s, --stream <stream>', 'only those of this stream')
    .option('--json', 'print each as a line of JSON')
    .action((flags: JsonFlag & { stream?: string }) => listAll(cli.io, flags))
  addCreate(webhooks, cli)
  addWebhookActions(webhooks, cli)
  webhooks
    .command('show')
    .description('Show a webhook: its settings, its state and how far it has come.')
    .argument('<id>', 'wh_…')
    .option('--json', 'print it as JSON')
    .action(async (id: string, flags: JsonFlag) => {
      const webhook = await connect(cli.io).webhooks.get(id, { signal: cli.io.signal })
      cli.io.stdout.write(flags.json === true ? `${JSON.stringify(webhook)}\n` : details(webhook))
    })
  webhooks
    .command('delete')
    .description('Delete a webhook, with what it has still to deliver.')
    .argument('<id>', 'wh_…')
    .action(async (id: string) => {
      await connect(cli.io).webhooks.delete(id, { signal: cli.io.signal })
      cli.io.stdout.write(`${createStyle(cli.io.stdout, cli.io.env).green('✓')} deleted ${id}\n`)
    })
}

function addCreate(webhooks: Command, cli: Cli): void {
  webhooks
    .command('create')
    .description('Create a webhook. Its signing secret is printed this once.')
    .argument('<stream>', 'the stream to deliver; made if there is none of the name')
    .argument('<url>', 'where to deliver')
    .option(
      '-t, --types <types>',
      'only these types, with commas between; * at the end matches any rest',
      list,
    )
    .option('-f, --from <position>', 'start, now (default), or an offset', position)
    .option('--ordering <unit>', 'stream, key (default) or none', oneOf('stream', 'key', 'none'))
    .option(
      '--format <format>',
      'standard (default), raw, cloudevents or cloudevents-binary',
      oneOf('standard', 'raw', 'cloudevents', 'cloudevents-binary'),
    )
    .option('--signature <version>', 'v1 (HMAC-SHA256, default) or v1a (ed25519)', oneOf('v1', 'v1a'))
    .option('--secret <secret>', 'sign with this secret instead of a new one')
    .option('--max-attempts <n>', '1 to 50 (default 10)', wholeNumber(1, 50))
    .option('--timeout-ms <ms>', 'of one attempt, 1000 to 30000 (default 15000)', wholeNumber(1000, 30_000))
    .option(
      '--rate-limit <n>',
      'requests per second, at most 10000 (default: no limit)',
      wholeNumber(1, 10_000),
    )
    .option('--header <name=value>', 'sent with each request; may be repeated', pair)
    .option('--json', 'print it as JSON')
    .action((stream: string, url: string, flags: CreateFlags) => create(cli.io, { stream, url }, flags))
}

type CreateFlags = JsonFlag &
  Omit<WebhookInput, 'stream' | 'url' | 'headers' | 'types'> & {
    types?: string[]
    header?: Record<string, string>
  }

async function create(
  io: Io,
  target: Pick<WebhookInput, 'stream' | 'url'>,
  flags: CreateFlags,
): Promise<void> {
  const { json, header, ...rest } = flags
  const input = { ...target, ...rest, ...(header === undefined ? {} : { headers: header }) }
  const created = await connect(io).webhooks.create(input, { signal: io.signal })
  if (json === true) {
    io.stdout.write(`${JSON.stringify(created)}\n`)
    return
  }
  const style = createStyle(io.stdout, io.env)
  const publicKey = created.publicKey === undefined ? '' : `\n  public key  ${created.publicKey}`
  io.stdout.write(
    `${style.green('✓')} created ${style.bold(created.id)}: ${created.stream} → ${created.url}
  secret      ${created.secret} ${style.dim('(shown this once)')}${publicKey}\n`,
  )
}

async function listAll(io: Io, flags: JsonFlag & { stream?: string }): Promise<void> {
  const style = createStyle(io.stdout, io.env)
  const rows: string[][] = []
  for await (const webhook of everyWebhook(connect(io), io, flags.stream)) {
    if (flags.json === true) io.stdout.write(`${JSON.stringify(webhook)}\n`)
    else rows.push(row(webhook, style))
  }
  if (flags.json === true) return
  if (rows.length === 0)
    io.stderr.write('There are no webhooks. `millrace webhooks create --help` tells how to make one.\n')
  else
    io.stdout.write(table(['id', 'stream', 'state', 'lag', 'retrying', 'dead', 'url'].map(style.bold), rows))
}

async function* everyWebhook(
  client: Client,
  io: Io,
  stream: string | undefined,
): AsyncGenerator<Webhook, void, undefined> {
  let cursor: string | undefined
  do {
    const page = await client.webhooks.list({ limit: 100, cursor, stream, signal: io.signal })
    yield* page.webhooks
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
}

function row(webhook: Webhook, style: Style): string[] {
  const { id, stream, state, retrying, dead, url } = webhook
  return [
    id,
    printable(stream),
    paintState(state, style),
    lagOf(webhook),
    retrying > 0 ? style.yellow(String(retrying)) : '0',
    dead > 0 ? style.red(String(dead)) : '0',
    printable(url),
  ]
}

function paintState(state: Webhook['state'], style: Style): string {
  if (state === 'active') return style.green(state)
  return state === 'paused' ? style.yellow(state) : style.red(state)
}

function lagOf({ lag, lagCapped }: Webhook): string {
  return `${lagCapped ? '> ' : ''}${lag}`
}

function details(webhook: Webhook): string {
  const { lagCapped: _, lag: __, ...rest } = webhook
  const facts = Object.entries({ ...rest, lag: lagOf(webhook) })
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${printable(plain(value))}\n`).join('')
}

function plain(value: unknown): string {
  if (value === null) return '–'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
