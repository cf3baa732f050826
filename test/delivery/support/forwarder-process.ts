import { spawn, type ChildProcess } from 'node:child_process'
import { createWaiters } from '../../support/waiters.ts'

/** A forwarder in a process of its own, started as a user would. */
export interface ForwarderProcess {
  pid: number
  /** Resolves once it says that it delivers. */
  ready(): Promise<void>
  /** Ends it with no chance to clean up. */
  kill(): Promise<void>
  /** All that it has printed so far. */
  output(): string
  /** Resolves with its exit code once it has ended by itself. */
  exited: Promise<number | null>
  /** Asks it to stop; resolves with its exit code. */
  stop(): Promise<number | null>
}

/** @param env beside DATABASE_URL and MILLRACE_ALLOW_INSECURE_TARGETS */
export function startForwarderProcess(
  databaseUrl: string,
  env: Record<string, string> = {},
): ForwarderProcess {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', 'workers/forwarder.ts'], {
    env: { ...process.env, DATABASE_URL: databaseUrl, MILLRACE_ALLOW_INSECURE_TARGETS: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const waiters = createWaiters()
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8')
      waiters.changed()
    })
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    return exited
  }
  return {
    pid: child.pid!,
    ready: () =>
      waiters.until(
        () => output.includes('delivering'),
        90_000,
        () => output,
      ),
    output: () => output,
    exited,
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
  }
}
