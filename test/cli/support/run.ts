import { runCli } from '../../../src/cli/run.ts'
import type { Io, TextOutput } from '../../../src/cli/io.ts'
import { createWaiters } from '../../support/waiters.ts'
import type { ApiServer } from '../../support/api-server.ts'

/** A command that runs in this process. */
export interface RunningCommand {
  /** All that it has printed so far. */
  out(): string
  err(): string
  /** Resolves once its output satisfies the condition. */
  until(met: (out: string, err: string) => boolean): Promise<void>
  /** Ctrl-C. */
  interrupt(): void
  done: Promise<number>
}

/** What a command printed, and its exit code. */
export interface CommandResult {
  code: number
  out: string
  err: string
}

/** The surroundings of a command in a test. */
export interface CommandOptions {
  env?: Record<string, string | undefined>
  /** Absent: a terminal at which nobody types. */
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Whether the outputs are terminals. Default false. */
  tty?: boolean
  fetch?: typeof globalThis.fetch
}

export function start(args: string[], options: CommandOptions = {}): RunningCommand {
  const waiters = createWaiters()
  const texts = { out: '', err: '' }
  const output = (name: 'out' | 'err'): TextOutput => ({
    write(text) {
      texts[name] += text
      waiters.changed()
    },
    drained: async () => {},
    isTTY: options.tty ?? false,
    columns: 80,
  })
  const stop = new AbortController()
  const io: Io = {
    stdin: stdinOf(options.stdin),
    stdout: output('out'),
    stderr: output('err'),
    env: options.env ?? {},
    signal: stop.signal,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    now: () => Date.now(),
  }
  return {
    out: () => texts.out,
    err: () => texts.err,
    until: (met) =>
      waiters.until(
        () => met(texts.out, texts.err),
        15_000,
        () => `printed ${JSON.stringify(texts)}`,
      ),
    interrupt: () => stop.abort('SIGINT'),
    done: runCli(args, io),
  }
}

export async function run(args: string[], options: CommandOptions = {}): Promise<CommandResult> {
  const command = start(args, options)
  const code = await command.done
  return { code, out: command.out(), err: command.err() }
}

/** The environment by which a command finds a server. */
export function envOf(server: Pick<ApiServer, 'url' | 'rootKey'>): Record<string, string> {
  return { MILLRACE_URL: server.url, MILLRACE_KEY: server.rootKey }
}

function stdinOf(given: CommandOptions['stdin']): Io['stdin'] {
  const chunks = typeof given === 'string' ? [new TextEncoder().encode(given)] : given
  async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
    if (chunks instanceof Uint8Array) yield chunks
    else yield* chunks ?? []
  }
  return { isTTY: given === undefined, [Symbol.asyncIterator]: read }
}
