import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'

/** A PgBouncer in transaction mode. */
export interface PgBouncer {
  /** The address of a database of the test server, through the pooler. */
  through(url: string): string
  close(): Promise<void>
}

const command = ['/usr/sbin/pgbouncer', 'pgbouncer'].find(
  (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
)

/** Whether there is one on this machine (Debian: `apt-get install pgbouncer`). */
export const hasPgBouncer = command !== undefined

/**
 * Starts it before a server, with two sessions to it for however many clients, so that each client meets what
 * another one left behind in a session.
 */
export async function startPgBouncer(serverUrl: string): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-pgbouncer-'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(file, settings(new URL(serverUrl), port))
  // it refuses to run as root, and then runs as nobody, who has to read the file
  const asNobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  await chmod(folder, 0o755)
  const child = spawn(command!, [file], { ...asNobody, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += String(text)))
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const close = async (): Promise<void> => {
    child.kill('SIGINT')
    const giveUp = setTimeout(() => child.kill('SIGKILL'), 5_000)
    await exited
    clearTimeout(giveUp)
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await vi.waitFor(() => answers(port), { timeout: 20_000, interval: 50 })
  } catch (error) {
    await close()
    throw new Error(`PgBouncer did not come up: ${said}`, { cause: error })
  }
  return {
    through(url) {
      const changed = new URL(url)
      changed.host = `127.0.0.1:${port}`
      return changed.href
    },
    close,
  }
}

function settings({ hostname, port, username, password }: URL, ownPort: number): string {
  const quoted = (text: string): string => `'${decodeURIComponent(text).replaceAll("'", "''")}'`
  return `[databases]
* = host=${hostname} port=${port} user=${quoted(username)} password=${quoted(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
# what is left behind in a session shall be met
server_reset_query_always = 0
`
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}
