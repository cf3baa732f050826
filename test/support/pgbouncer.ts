import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A real PgBouncer in transaction mode before a server. */
export interface PgBouncer {
  /** A connection string that leads through it. */
  through(url: string): string
  close(): Promise<void>
}

const program = ['/usr/sbin/pgbouncer', 'pgbouncer'].find(
  (path) => spawnSync(path, ['--version'], { timeout: 10_000 }).status === 0,
)

/** Whether there is one on this machine. */
export const hasPgBouncer = program !== undefined

export async function startPgBouncer(url: string): Promise<PgBouncer> {
  const server = new URL(url)
  const folder = await mkdtemp(join(tmpdir(), 'millrace-pgbouncer-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const settings = join(folder, 'pgbouncer.ini')
  await writeFile(
    settings,
    `[databases]
* = host=${server.hostname} port=${server.port || 5432} user=${server.username} password=${server.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`,
  )
  // it refuses to run as root
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(program!, [...user, settings], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject).on('exit', () => reject(new Error(`PgBouncer ended: ${log}`)))
    child.stderr.on('data', (bytes: Buffer) => {
      log += bytes.toString()
      if (log.includes('process up')) resolve()
    })
  })
  return {
    through(given) {
      const changed = new URL(given)
      changed.host = `127.0.0.1:${port}`
      return changed.href
    },
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
