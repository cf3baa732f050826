import { spawn, type ChildProcess } from 'node:child_process'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** The forwarder as a VM runs it, in a process of its own. */
export interface ForwarderProcess {
  /** Memory in use (resident set) in MB: now, and the most so far. */
  memory(): Promise<{ now: number; most: number }>
  stop(): Promise<void>
}

const folder = new URL('../.build/', import.meta.url)
const file = fileURLToPath(new URL('forwarder.mjs', folder))

/** Makes one plain JavaScript file of workers/forwarder.ts: what compiles TypeScript must not count. */
async function bundleForwarder(): Promise<void> {
  await mkdir(folder, { recursive: true })
  await build({
    entryPoints: [fileURLToPath(new URL('../../workers/forwarder.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outfile: file,
    logLevel: 'error',
    banner: { js: '' },
  })
}

/** Starts a forwarder on a database, and waits until it delivers. */
export async function startForwarderProcess(url: string): Promise<ForwarderProcess> {
  await bundleForwarder()
  const child = spawn(process.execPath, [file], {
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
      await rm(folder, { recursive: true, force: true })
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

async function readMemory(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const mb = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
  return { now: mb('VmRSS'), most: mb('VmHWM') }
}
