import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { processExists } from '../../../src/embedded/process-identity.ts'

/**
 * A server at the other end of a network cable: a namespace of Linux with one virtual cable to this one, and a
 * relay in it. What is lost on the way is lost as on a real network: the kernels on both sides see neither an
 * answer nor an end nor a reset.
 */
export interface SilentNetwork {
  /** A connection string that leads over the cable. */
  through(url: string): string
  /** From now on nothing comes back over the cable, for whichever connection. */
  silence(): void
  /** It works again. */
  heal(): void
  /**
   * As a firewall that has lost its memory: nothing comes back any more for connections that there are now,
   * while new ones work. Returns how many there were.
   */
  forget(): Promise<number>
  close(): Promise<void>
}

const prefix = 'millrace-'
let count = 0
const relayPort = 5432

/** Why there can be none here; null: there can. */
export function whyNoNetwork(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are of Linux'
  if (process.getuid?.() !== 0) return 'only root may make a network namespace'
  try {
    const probe = `${prefix}probe-${process.pid}`
    ip('netns', 'add', probe)
    try {
      ip('link', 'add', cable('p'), 'type', 'veth', 'peer', 'name', 'far', 'netns', probe)
    } finally {
      ip('netns', 'del', probe)
    }
    return null
  } catch (error) {
    return `no network namespace is to be had: ${(error as Error).message.split('\n')[0]}`
  }
}

/** @param target where the relay at the far end leads to, as seen from here */
export async function createSilentNetwork(target: { host: string; port: number }): Promise<SilentNetwork> {
  removeLeftovers()
  const index = count++
  const name = `${prefix}${index}-${process.pid}`
  // of the range that is set aside for measurements
  const [near, far] = [1, 2].map((host) => `198.18.${process.pid % 250}.${index * 4 + host}`) as [
    string,
    string,
  ]
  const folder = await mkdtemp(join(tmpdir(), 'millrace-network-'))
  await chmod(folder, 0o755)
  // a socket that is a file reaches from one namespace into the other
  const path = join(folder, 'relay')
  const exit = await startExit(path, target)
  layCable({ name, near, far, cable: cable(index) })
  const relay = await startRelay(name, far, path)
  return {
    through(url) {
      const changed = new URL(url)
      changed.host = `${far}:${relayPort}`
      return changed.href
    },
    silence: () => ip('-n', name, 'route', 'add', 'blackhole', `${near}/32`),
    heal: () => ip('-n', name, 'route', 'del', 'blackhole', `${near}/32`),
    async forget() {
      const ports = await remotePorts(relay)
      for (const port of ports) {
        ip('-n', name, 'rule', 'add', 'pref', '10', 'to', near, 'ipproto', 'tcp', 'dport', port, 'blackhole')
      }
      return ports.length
    },
    async close() {
      ip('netns', 'del', name)
      const ended = once(relay, 'exit')
      relay.kill('SIGKILL')
      await ended
      await exit.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** The name of our end; Linux allows 15 characters. */
function cable(mark: string | number): string {
  return `mr${mark}${process.pid}`
}

function layCable(to: { name: string; near: string; far: string; cable: string }): void {
  ip('netns', 'add', to.name)
  ip('link', 'add', to.cable, 'type', 'veth', 'peer', 'name', 'far', 'netns', to.name)
  ip('address', 'add', `${to.near}/30`, 'dev', to.cable)
  ip('link', 'set', to.cable, 'up')
  ip('-n', to.name, 'address', 'add', `${to.far}/30`, 'dev', 'far')
  ip('-n', to.name, 'link', 'set', 'far', 'up')
}

/** What tests that were killed have left. */
function removeLeftovers(): void {
  for (const line of ip('netns', 'list').split('\n')) {
    const [name = ''] = line.split(' ')
    const pid = Number(name.startsWith(prefix) ? name.split('-').at(-1) : Number.NaN)
    if (Number.isInteger(pid) && !processExists(pid)) ip('netns', 'del', name)
  }
}

async function startRelay(name: string, host: string, path: string): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('relay.ts', import.meta.url))
  const args = ['netns', 'exec', name, process.execPath, '--import', 'tsx', script]
  const relay = spawn('ip', [...args, host, String(relayPort), path], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  await once(relay.stdout!, 'data')
  return relay
}

async function remotePorts(relay: ChildProcess): Promise<string[]> {
  const answer = once(relay, 'message')
  relay.send('ports')
  return ((await answer) as [string[]])[0]
}

/** The way out, on this side. */
async function startExit(
  path: string,
  target: { host: string; port: number },
): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const ends = [near, connect(target)]
    for (const [index, socket] of ends.entries()) {
      const other = ends[1 - index]!
      sockets.add(socket)
      socket
        .on('error', () => other.destroy())
        .on('close', () => {
          sockets.delete(socket)
          other.destroy()
        })
      socket.pipe(other)
    }
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
