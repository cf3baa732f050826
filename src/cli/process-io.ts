import { once } from 'node:events'
import type { Io, TextOutput } from './io.ts'

/** The command line's surroundings in a real process. Installs the signal handlers. */
export function createProcessIo(): Io {
  const stop = new AbortController()
  abortOnSignals(stop)
  abortWhenNobodyReads(process.stdout, stop)
  return {
    stdin: {
      get isTTY() {
        return process.stdin.isTTY
      },
      [Symbol.asyncIterator]: () => readStdin(stop.signal),
    },
    stdout: output(process.stdout, stop.signal),
    stderr: output(process.stderr, stop.signal),
    env: process.env,
    signal: stop.signal,
    fetch: (input, init) => globalThis.fetch(input, init),
    now: () => Date.now(),
  }
}

/** The first signal asks for an orderly end; whoever presses Ctrl-C again wants out now. */
function abortOnSignals(stop: AbortController): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(130)
      stop.abort(name)
    })
  }
}

/** `millrace tail … | head` is an ordinary way to stop, not a crash. */
function abortWhenNobodyReads(stream: NodeJS.WriteStream, stop: AbortController): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    stop.abort('EPIPE')
  })
}

function output(stream: NodeJS.WriteStream, signal: AbortSignal): TextOutput {
  return {
    write: (text) => void stream.write(text),
    async drained() {
      if (!stream.writableNeedDrain || signal.aborted) return
      // an abort must not wait for a reader that has stopped reading
      await once(stream, 'drain', { signal }).catch(() => {})
    },
    get isTTY() {
      return stream.isTTY === true
    },
    get columns() {
      return stream.columns || 80
    },
  }
}

async function* readStdin(signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const end = (): void => void process.stdin.destroy()
  signal.addEventListener('abort', end)
  try {
    for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) yield chunk
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', end)
  }
}
