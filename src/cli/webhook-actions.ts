import { InvalidArgumentError, type Command } from 'commander'
import type { WebhookActions, WebhookAttempt, WebhookDelivery } from '../client/webhook-actions.ts'
import { connect } from './connection.ts'
import type { Cli } from './io.ts'
import { oneOf, wholeNumber } from './options.ts'
import { printable } from './printable.ts'
import { createStyle, type Style } from './style.ts'
import { table } from './table.ts'

const hourMs = 3_600_000

/** `millrace webhooks pause | resume | test | rotate-secret | seek | redrive | retry | deliveries | attempts` */
export function addWebhookActions(webhooks: Command, cli: Cli): void {
  addSwitches(webhooks, cli)
  addTest(webhooks, cli)
  addRotate(webhooks, cli)
  addReplays(webhooks, cli)
  addDeliveries(webhooks, cli)
  addAttempts(webhooks, cli)
}

/** The webhooks of the server, what every call takes, and how to say that it went well. */
function tools({ io }: Cli) {
  const style = createStyle(io.stdout, io.env)
  return {
    client: connect(io).webhooks,
    call: { signal: io.signal },
    style,
    done: (text: string): void => void io.stdout.write(`${style.green('✓')} ${text}\n`),
    json: (value: object): void => void io.stdout.write(`${JSON.stringify(value)}\n`),
  }
}

function addSwitches(webhooks: Command, cli: Cli): void {
  webhooks
    .command('pause')
    .description('Send nothing more; events wait. Returns once whoever was delivering knows.')
    .argument('<id>', 'wh_…')
    .action(async (id: string) => {
      const { client, call, done } = tools(cli)
      const { state, offset } = await client.pause(id, call)
      done(`${id} is ${state}, at offset ${offset}`)
    })
  webhooks
    .command('resume')
    .description('Go on with a paused or disabled webhook where it stopped.')
    .argument('<id>', 'wh_…')
    .action(async (id: string) => {
      const { client, call, done } = tools(cli)
      const { offset, lag } = await client.resume(id, call)
      done(`${id} goes on at offset ${offset}, with ${lag} events waiting`)
    })
}

function addTest(webhooks: Command, cli: Cli): void {
  webhooks
    .command('test')
    .description('Send a signed test event now, and show the answer. Fails when it is not 2xx.')
    .argument('<id>', 'wh_…')
    .option('--json', 'print it as JSON')
    .action(async (id: string, flags: { json?: boolean }) => {
      const { client, call, style, json } = tools(cli)
      const outcome = await client.test(id, call)
      if (!outcome.delivered) cli.exitCode = 1
      if (flags.json === true) return json(outcome)
      const { delivered, status, error, answer, durationMs } = outcome
      const mark = delivered ? `${style.green('✓')} delivered` : `${style.red('✗')} not delivered`
      const what = status === undefined ? printable(error ?? '') : `answered ${status}`
      const body = answer ? `\n${answer.split('\n').map(printable).join('\n')}` : ''
      cli.io.stdout.write(`${mark}: ${what}, in ${durationMs} ms${body}\n`)
    })
}

function addRotate(webhooks: Command, cli: Cli): void {
  webhooks
    .command('rotate-secret')
    .description('Make a new signing secret, which is printed this once. For a while both sign.')
    .argument('<id>', 'wh_…')
    .option('--secret <secret>', 'take this one instead of a new one')
    .option(
      '--overlap-hours <n>',
      'how long the old one still signs, 0 to 168 (default 24)',
      wholeNumber(0, 168),
    )
    .option('--json', 'print it as JSON')
    .action(async (id: string, flags: { secret?: string; overlapHours?: number; json?: boolean }) => {
      const { client, call, style, done, json } = tools(cli)
      const overlapMs = flags.overlapHours === undefined ? undefined : flags.overlapHours * hourMs
      const rotated = await client.rotateSecret(id, { ...call, secret: flags.secret, overlapMs })
      if (flags.json === true) return json(rotated)
      done(`${id} has a new secret; the old one signs too until ${rotated.overlapUntil}`)
      const publicKey = rotated.publicKey === undefined ? '' : `  public key  ${rotated.publicKey}\n`
      cli.io.stdout.write(`  secret      ${rotated.secret} ${style.dim('(shown this once)')}\n${publicKey}`)
    })
}

function addReplays(webhooks: Command, cli: Cli): void {
  webhooks
    .command('seek')
    .description('Move a webhook in its stream: what comes after is delivered, again if it was before.')
    .argument('<id>', 'wh_…')
    .argument(
      '<place>',
      'start, an offset (to go on after it), or a time such as 2026-01-15T12:00:00Z',
      place,
    )
    .action(async (id: string, to: { offset: number } | { time: Date }) => {
      const { client, call, done } = tools(cli)
      done(`${id} goes on after offset ${await client.seek(id, to, call)}`)
    })
  webhooks
    .command('redrive')
    .description('Send dead letters again, with all their attempts anew.')
    .argument('<id>', 'wh_…')
    .option('--since <time>', 'only those that died at or after it', time)
    .action(async (id: string, { since }: { since?: Date }) => {
      const { client, call, done } = tools(cli)
      done(`${await client.redrive(id, { ...call, since })} dead letters are sent again`)
    })
  webhooks
    .command('retry')
    .description('Retry one delivery now: a retrying one before its time, a dead one anew.')
    .argument('<id>', 'wh_…')
    .argument('<offset>', 'the offset of its event', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .action(async (id: string, offset: number) => {
      const { client, call, done } = tools(cli)
      await client.retry(id, offset, call)
      done(`offset ${offset} is due now`)
    })
}

interface ListFlags {
  limit: number
  json?: boolean
}

function addDeliveries(webhooks: Command, cli: Cli): void {
  webhooks
    .command('deliveries')
    .description('List the deliveries in trouble: retrying, blocked behind one of their key, or dead.')
    .argument('<id>', 'wh_…')
    .option('--state <state>', 'retrying, blocked or dead', oneOf('retrying', 'blocked', 'dead'))
    .option('-n, --limit <n>', 'at most so many', wholeNumber(1, 10_000), 20)
    .option('--json', 'print each as a line of JSON')
    .action(async (id: string, { state, ...flags }: ListFlags & { state?: WebhookDelivery['state'] }) => {
      const page: Page<WebhookDelivery> = async (client, range) => {
        const { deliveries, next } = await client.deliveries(id, { ...range, state })
        return { lines: deliveries, next }
      }
      const head = ['offset', 'state', 'type', 'key', 'attempts', 'due', 'last error']
      await print(cli, flags, { page, head, row: deliveryRow, none: 'Nothing is in trouble.' })
    })
}

function addAttempts(webhooks: Command, cli: Cli): void {
  webhooks
    .command('attempts')
    .description('List the attempts of late, newest first. Events that succeed at once leave none.')
    .argument('<id>', 'wh_…')
    .option(
      '--outcome <outcome>',
      'delivered, retry, dead or disabled',
      oneOf('delivered', 'retry', 'dead', 'disabled'),
    )
    .option('--offset <offset>', 'only those of this event', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option('-n, --limit <n>', 'at most so many', wholeNumber(1, 10_000), 20)
    .option('--json', 'print each as a line of JSON')
    .action(async (id: string, { outcome, offset, ...flags }: ListFlags & AttemptFilter) => {
      const page: Page<WebhookAttempt> = async (client, range) => {
        const { attempts, next } = await client.attempts(id, { ...range, outcome, offset })
        return { lines: attempts, next }
      }
      const head = ['at', 'offset', 'attempt', 'outcome', 'status', 'ms', 'error']
      await print(cli, flags, { page, head, row: attemptRow, none: 'No attempts are logged.' })
    })
}

interface AttemptFilter {
  outcome?: WebhookAttempt['outcome']
  offset?: number
}

type Page<Line> = (
  client: WebhookActions,
  range: { cursor?: number | undefined; limit: number; signal: AbortSignal },
) => Promise<{ lines: Line[]; next: number | null }>

interface Listing<Line> {
  page: Page<Line>
  head: string[]
  row: (line: Line, style: Style) => string[]
  none: string
}

async function print<Line extends object>(
  cli: Cli,
  { limit, json }: ListFlags,
  listing: Listing<Line>,
): Promise<void> {
  const { client, style } = tools(cli)
  const { stdout, stderr, signal } = cli.io
  const lines: Line[] = []
  let next: number | null | undefined
  while (next !== null && lines.length < limit) {
    const range = { cursor: next, limit: Math.min(100, limit - lines.length), signal }
    const found = await listing.page(client, range)
    lines.push(...found.lines)
    next = found.next
  }
  if (json === true) for (const line of lines) stdout.write(`${JSON.stringify(line)}\n`)
  else if (lines.length === 0) stderr.write(`${listing.none}\n`)
  else
    stdout.write(
      table(
        listing.head.map(style.bold),
        lines.map((line) => listing.row(line, style)),
      ),
    )
  if (next !== null) stderr.write(`There are more: --limit ${limit * 5} shows more of them.\n`)
}

function deliveryRow(delivery: WebhookDelivery, style: Style): string[] {
  const { offset, state, type, unit, attempts, dueAt, lastError } = delivery
  return [
    String(offset),
    state === 'dead' ? style.red(state) : style.yellow(state),
    printable(type ?? '(trimmed)'),
    printable(unit ?? '–'),
    String(attempts),
    dueAt ?? '–',
    printable(lastError ?? '–'),
  ]
}

function attemptRow(line: WebhookAttempt, style: Style): string[] {
  const { at, offset, attempt, outcome, status, durationMs, error } = line
  const paint = outcome === 'delivered' ? style.green : outcome === 'retry' ? style.yellow : style.red
  return [
    at,
    String(offset),
    String(attempt),
    paint(outcome),
    status === null ? '–' : String(status),
    String(durationMs),
    printable(error ?? '–'),
  ]
}

function place(text: string): { offset: number } | { time: Date } {
  if (text === 'start') return { offset: 0 }
  return /^\d+$/.test(text) ? { offset: wholeNumber(0, Number.MAX_SAFE_INTEGER)(text) } : { time: time(text) }
}

function time(text: string): Date {
  const at = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('It must be a time such as 2026-01-15T12:00:00Z.')
  return at
}
