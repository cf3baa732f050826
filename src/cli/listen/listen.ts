import { InvalidArgumentError, type Command } from 'commander'
import type { WebhookInput } from '../../client/types.ts'
import { isMillraceError } from '../../errors/millrace-error.ts'
import { createDeferred } from '../../wakes/deferred.ts'
import { parseVerifyingSecret } from '../../webhooks/secrets.ts'
import { connect, findServer, isLoopback } from '../connection.ts'
import { explainError } from '../explain-error.ts'
import type { Cli, Io } from '../io.ts'
import { list, oneOf, position, wholeNumber } from '../options.ts'
import { createStyle } from '../style.ts'
import { usageError } from '../usage-error.ts'
import { deliveryJson, deliveryText, toDelivery } from './describe-delivery.ts'
import { startReceiver, type Received } from './receiver.ts'
import { register, type Registration } from './registration.ts'

interface ListenFlags {
  port: number
  stream?: string
  types?: string[]
  from?: 'start' | 'now' | number
  ordering?: 'stream' | 'key' | 'none'
  publicUrl?: string
  secret?: string
  answer?: number[]
  delay: number
  retryAfter?: number
  json?: boolean
}

const examples = `
Examples:
  $ millrace listen --stream orders
      registers itself as a webhook of the stream, and removes itself at the end
  $ millrace listen --stream orders --from start
      everything there is, then what comes
  $ millrace listen --stream orders --answer 500,500,200 --retry-after 2
      see how failures are tried again
  $ millrace listen --secret whsec_…
      verify what anybody sends to port 9000

It listens on 127.0.0.1 only. Without a secret, deliveries are shown as unverified.`

/** `millrace listen` */
export function addListen(program: Command, cli: Cli): void {
  program
    .command('listen')
    .summary('receive webhooks here, verify and print them')
    .description('A local receiver: verifies and prints each delivery, and answers as it is told.')
    .option('-p, --port <port>', 'where to listen on 127.0.0.1; 0: a free port', wholeNumber(0, 65_535), 9000)
    .option('-s, --stream <stream>', 'register a webhook for this stream, until Ctrl-C')
    .option('-t, --types <types>', 'with --stream: only these types, with commas between', list)
    .option('-f, --from <position>', 'with --stream: start, now (default), or an offset', position)
    .option(
      '--ordering <unit>',
      'with --stream: stream, key (default) or none',
      oneOf('stream', 'key', 'none'),
    )
    .option('--public-url <url>', 'with --stream: where the server reaches this receiver, such as a tunnel')
    .option('--secret <secret>', 'verify with this secret (whsec_… or whpk_…)', verifyingSecret)
    .option('--answer <statuses>', 'statuses to answer with, in turn (default: 200)', statuses)
    .option('--delay <ms>', 'hold each answer back so long', wholeNumber(0, 600_000), 0)
    .option(
      '--retry-after <seconds>',
      'the Retry-After of answers that are no success',
      wholeNumber(0, 86_400),
    )
    .option('--json', 'print each delivery as a line of JSON')
    .addHelpText('after', examples)
    .action((flags: ListenFlags) => listen(cli.io, flags))
}

async function listen(io: Io, flags: ListenFlags): Promise<void> {
  checkFlags(io, flags)
  const secret = createDeferred<string | null>()
  const plan = {
    statuses: flags.answer ?? [200],
    delayMs: flags.delay,
    retryAfterSeconds: flags.retryAfter ?? null,
  }
  const print = createPrinter(io, flags)
  // the first delivery may come before the answer that tells the secret
  const receiver = await startReceiver(flags.port, plan, async (received) =>
    print(received, await secret.promise),
  )
  let registration: Registration | null = null
  try {
    registration = await registerSelf(io, flags, receiver.url)
    secret.resolve(registration?.secret ?? flags.secret ?? null)
    announce(io, { url: receiver.url, stream: flags.stream, id: registration?.id })
    await untilAborted(io.signal)
  } catch (error) {
    if (!io.signal.aborted) throw error
  } finally {
    secret.resolve(null)
    // first the webhook, so that nothing is sent to a port that is closed already
    await remove(io, registration)
    await receiver.close()
  }
}

function checkFlags(io: Io, flags: ListenFlags): void {
  if (flags.stream === undefined) {
    for (const name of ['types', 'from', 'ordering', 'publicUrl'] as const) {
      if (flags[name] === undefined) continue
      throw usageError(`--${name === 'publicUrl' ? 'public-url' : name} goes with --stream only`)
    }
    return
  }
  const { url } = findServer(io.env)
  if (flags.publicUrl === undefined && !isLoopback(url)) {
    throw usageError(
      `the server at ${url} cannot reach 127.0.0.1: tell with --public-url where it reaches this receiver`,
    )
  }
  if (flags.secret?.startsWith('whpk_') === true) {
    throw usageError('with --stream the secret must be one that signs (whsec_…)')
  }
}

async function registerSelf(io: Io, flags: ListenFlags, ownUrl: string): Promise<Registration | null> {
  const { stream, types, from, ordering, secret } = flags
  if (stream === undefined) return null
  const input: WebhookInput = {
    stream,
    url: flags.publicUrl ?? ownUrl,
    ...(types === undefined ? {} : { types }),
    ...(from === undefined ? {} : { from }),
    ...(ordering === undefined ? {} : { ordering }),
    ...(secret === undefined ? {} : { secret }),
  }
  return register(connect(io), input)
}

function createPrinter(io: Io, { json }: ListenFlags) {
  const style = createStyle(io.stdout, io.env)
  return async (received: Received, secret: string | null): Promise<void> => {
    const delivery = await toDelivery(received, secret, new Date(io.now()))
    io.stdout.write(json === true ? deliveryJson(delivery) : deliveryText(delivery, style))
    await io.stdout.drained()
  }
}

function announce(
  io: Io,
  { url, stream, id }: { url: string; stream?: string | undefined; id?: string | undefined },
): void {
  const style = createStyle(io.stderr, io.env)
  const source = stream === undefined ? '' : ` for ${style.bold(stream)} (webhook ${id}, removed at the end)`
  io.stderr.write(`Listening on ${style.bold(url)}${source}. Ctrl-C ends.\n`)
}

async function remove(io: Io, registration: Registration | null): Promise<void> {
  if (registration === null) return
  try {
    await registration.remove()
    io.stderr.write(`Removed webhook ${registration.id}.\n`)
  } catch (error) {
    io.stderr.write(
      `millrace: webhook ${registration.id} is still registered: ${explainError(error, io)}; later: millrace webhooks delete ${registration.id}\n`,
    )
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function verifyingSecret(text: string): string {
  try {
    parseVerifyingSecret(text)
    return text
  } catch (error) {
    if (!isMillraceError(error)) throw error
    throw new InvalidArgumentError(`It ${error.message.replace(/^secret /, '')}.`)
  }
}

function statuses(text: string): number[] {
  return list(text, undefined).map((status) => wholeNumber(200, 599)(status))
}
