import type { Command } from 'commander'
import { doorbellUrl, ringDoorbell, type RingAnswer } from '../doorbell/ring-doorbell.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import { readSettings } from '../settings.ts'
import { systemClock } from '../system-ports.ts'
import type { Cli, Io } from './io.ts'
import { createStyle } from './style.ts'

const notes = `
It makes a forwarder look at once whether there is something to deliver, also one that
sleeps (MILLRACE_SLEEP=1) and hears nothing else. To ring too often does no harm.

Settings:
  MILLRACE_DOORBELL_URL     where it is (default: http://127.0.0.1:8790/doorbell)
  MILLRACE_DOORBELL_SECRET  the forwarder's own`

const defaultUrl = 'http://127.0.0.1:8790/doorbell'
/** For a person who waits; an edge app gives up sooner. */
const timeoutMs = 10_000

/** `millrace ring` */
export function addRing(program: Command, cli: Cli): void {
  program
    .command('ring')
    .summary("ring a forwarder's doorbell")
    .description("Rings a forwarder's doorbell.")
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', notes)
    .action(async ({ json = false }: { json?: boolean }) => {
      const { io } = cli
      const { url, answer } = await ring(io)
      if (answer.status !== 202) throw refused(url, answer)
      io.stdout.write(
        json ? `${JSON.stringify({ url, mode: answer.mode })}\n` : `${heard(io, url, answer)}\n`,
      )
    })
}

async function ring(io: Io): Promise<{ url: string; answer: RingAnswer }> {
  const { doorbell } = readSettings(io.env)
  const { secret } = doorbell
  if (secret === null) {
    const details = { setting: 'MILLRACE_DOORBELL_SECRET' }
    throw new MillraceError('INVALID_SETTING', 'MILLRACE_DOORBELL_SECRET is not set', { details })
  }
  const url = doorbellUrl(doorbell.url ?? defaultUrl)
  const ports = { clock: { ...systemClock, now: io.now }, fetch: io.fetch }
  try {
    const answer = await ringDoorbell({
      url,
      secret,
      ports,
      ring: { streamIds: 'all' },
      timeoutMs,
      signal: io.signal,
    })
    return { url, answer }
  } catch (error) {
    if (!isMillraceError(error) || error.code !== 'SERVER_UNREACHABLE') throw error
    // not the API server, whose absence would be explained otherwise
    throw new Error(`nobody answers at ${url}: does the forwarder run, with MILLRACE_DOORBELL_SECRET set?`, {
      cause: error,
    })
  }
}

function heard(io: Io, url: string, { mode }: RingAnswer): string {
  const mark = createStyle(io.stdout, io.env).green('✓')
  const state =
    mode === 'sleeping' ? 'it was sleeping, and wakes up' : `it was up already (${mode ?? 'no mode'})`
  return `${mark} rang ${url}: ${state}`
}

function refused(url: string, { status }: RingAnswer): Error {
  const reasons: Record<number, string> = {
    401: "it does not take the ring: is MILLRACE_DOORBELL_SECRET the forwarder's, and this machine's clock right?",
    404: 'there is no doorbell at this address',
    409: 'it has heard this very ring before',
  }
  return new Error(`${url} answered ${status}: ${reasons[status] ?? 'this is no doorbell of Millrace'}`)
}
