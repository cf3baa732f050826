import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** The forwarder as deploy/ starts it on a VM, in a process of its own. */
export interface ForwarderProcess {
  /** Memory in use (resident set) in MB: now, and the most so far. */
  memory(): Promise<{ now: number; most: number }>
  stop(): Promise<void>
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Builds dist/, from which forwarders are started: what compiles TypeScript as it loads must not count. */
export function buildForwarder(): void {
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
}

/** Starts a forwarder on a database, and waits until it delivers. */
export async function startForwarderProcess(url: string): Promise<ForwarderProcess> {
  const child = spawn(process.execPath, ['--max-semi-space-size=16', 'dist/workers/forwarder.js'], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: url, MILLRACE_ALLOW_INSECURE_TARGETS: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await lineWith(child, 'delivering')
  return {
    memory: () => readMemory(child.pid!),
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Waits for a log line; all the others are read and dropped. */
function lineWith(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout!.on('data', (bytes: Buffer) => bytes.includes(text) && resolve())
    child.once('exit', (code) => reject(new Error(`the forwarder ended with ${code}`)))
  })
}

/** As Linux tells it. */
async function readMemory(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
  return { now: mb('VmRSS'), most: mb('VmHWM') }
}
