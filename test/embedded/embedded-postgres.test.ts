import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/embedded/embedded-postgres.ts'
import { livePostmaster, readPostmaster } from '../../src/embedded/postmaster.ts'
import { silentLog } from '../../src/system-ports.ts'

const isRoot = process.getuid?.() === 0
const folders: string[] = []

// Some of these set up three clusters, each a second of pure processor time on an idle machine.
vi.setConfig({ testTimeout: 120_000 })

afterEach(async () => {
  for (const folder of folders.splice(0)) {
    const postmaster = await livePostmaster(join(folder, 'pgdata'))
    if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
})

function newFolder(mode = 0o755): string {
  // Named so that the next run ends the servers of this one, should it be killed.
  const folder = mkdtempSync(join(tmpdir(), `millrace-test-${process.pid}-`))
  chmodSync(folder, mode)
  folders.push(folder)
  return folder
}

function start(
  dataDir: string,
  more: { port?: number; settings?: Record<string, string> } = {},
): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir, log: silentLog, ...more })
}

async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}

/** Starts a database in a process of its own, and says what it said. */
async function startElsewhere(
  dataDir: string,
): Promise<{ kill(): Promise<void>; attached: boolean; url: string }> {
  const script = join(import.meta.dirname, '../support/start-embedded.ts')
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { attached, url } = JSON.parse(line.toString()) as { attached: boolean; url: string }
  const kill = async (): Promise<void> => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  return { kill, attached, url }
}

describe('the embedded Postgres', () => {
  it('is a real server: UTF-8, fsync, loopback only, a password in a private file', async () => {
    const folder = newFolder()
    const server = await start(folder)
    expect(server.attached).toBe(false)
    const [row] = await query(
      server.url,
      `select current_database() as db, current_setting('server_encoding') as encoding, current_setting('fsync') as fsync,
        current_setting('listen_addresses') as address, current_setting('unix_socket_directories') as sockets, upper('ä') as upper`,
    )
    expect(row).toEqual({
      db: 'millrace',
      encoding: 'UTF8',
      fsync: 'on',
      address: '127.0.0.1',
      sockets: '',
      upper: 'Ä',
    })
    expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600)
    const open = new URL(server.url)
    open.password = 'guess'
    await expect(query(open.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
    await server.stop()
    await expect(query(server.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('keeps data, password and port from start to start', async () => {
    const folder = newFolder()
    const first = await start(folder, { settings: { max_connections: '42' } })
    expect(await query(first.url, 'show max_connections')).toEqual([{ max_connections: '42' }])
    await query(first.url, 'create table public.kept (id int)')
    await Promise.all([first.stop(), first.stop()])
    const second = await start(folder)
    expect(second.url).toBe(first.url)
    expect(await query(second.url, 'select * from public.kept')).toEqual([])
    await second.stop()
  })

  it('moves to another port when its own was taken in the meantime', async () => {
    const folder = newFolder()
    const squatter = createServer().listen(0, '127.0.0.1')
    await once(squatter, 'listening')
    const { port } = squatter.address() as AddressInfo
    writeFileSync(join(folder, 'port'), `${port}\n`)
    await expect(start(folder, { port })).rejects.toMatchObject({ code: 'INVALID_SETTING' })
    const server = await start(folder)
    expect(new URL(server.url).port).not.toBe(String(port))
    expect(readFileSync(join(folder, 'port'), 'utf8').trim()).toBe(new URL(server.url).port)
    await server.stop()
    squatter.close()
  })

  it("tells why it did not start, in the server's own words", async () => {
    const refused = start(newFolder(), { settings: { shared_buffers: 'plenty' } })
    await expect(refused).rejects.toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      message: expect.stringContaining('invalid value for parameter "shared_buffers": "plenty"') as string,
    })
  })
})

describe('several starts on one folder', () => {
  it('start one server, and the others attach', async () => {
    const folder = newFolder()
    const servers = await Promise.all([start(folder), start(folder), startElsewhere(folder)])
    expect(servers.filter(({ attached }) => !attached)).toHaveLength(1)
    expect(new Set(servers.map(({ url }) => url)).size).toBe(1)
    await servers[2].kill()
  })

  it.each(['the one that started it', 'the one that attached'])(
    'stop the server with the last of them: %s',
    async (last) => {
      const folder = newFolder()
      const owner = await start(folder)
      const guest = await start(folder)
      expect(guest.attached).toBe(true)
      const [first, second] = last === 'the one that attached' ? [owner, guest] : [guest, owner]
      await first.stop()
      expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
      await second.stop()
      expect(existsSync(join(owner.clusterDir, 'postmaster.pid'))).toBe(false)
    },
  )

  it('attach to the server of a process that was killed', async () => {
    const folder = newFolder()
    const killed = await startElsewhere(folder)
    await query(killed.url, 'create table public.before_the_kill (id int)')
    await killed.kill()
    const server = await start(folder)
    expect(server).toMatchObject({ attached: true, url: killed.url })
    expect(await query(server.url, 'select * from public.before_the_kill')).toEqual([])
    // the one that was killed does not count as a user any more
    await server.stop()
    expect(existsSync(join(server.clusterDir, 'postmaster.pid'))).toBe(false)
  })
})

describe('after a crash', () => {
  it('recovers when the server itself was killed', async () => {
    const folder = newFolder()
    const first = await start(folder)
    await query(first.url, 'create table public.durable (id int)')
    const { pid } = (await readPostmaster(first.clusterDir))!
    process.kill(pid, 'SIGKILL')
    const second = await start(folder)
    expect(second.attached).toBe(false)
    expect(await query(second.url, 'select * from public.durable')).toEqual([])
    await second.stop()
  })

  it('is not fooled by a process that got the id of the dead server', async () => {
    const folder = newFolder()
    const first = await start(folder)
    const pidFile = join(first.clusterDir, 'postmaster.pid')
    const lines = readFileSync(pidFile, 'utf8').split('\n')
    await first.stop()
    // A process of the same user as the server, which is what makes Postgres itself refuse.
    const { uid, gid } = statSync(first.clusterDir)
    const other = spawn('/bin/sleep', ['60'], { uid, gid, cwd: '/' })
    writeFileSync(pidFile, [other.pid, ...lines.slice(1)].join('\n'))
    const second = await start(folder)
    expect(second.attached).toBe(false)
    await second.stop()
    other.kill()
  })

  it('makes the cluster anew when the first attempt was cut off', async () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'pgdata.new', 'base'), { recursive: true })
    const server = await start(folder)
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(existsSync(join(folder, 'pgdata.new'))).toBe(false)
    await server.stop()
  })
})

describe.runIf(isRoot)('as root', () => {
  it('runs as the system user postgres, and says so in one line', async () => {
    const folder = newFolder()
    const lines: string[] = []
    const server = await startEmbeddedPostgres({
      dataDir: folder,
      log: { ...silentLog, info: (_facts, message) => lines.push(message) },
    })
    expect(lines).toEqual(['Started as root: the embedded Postgres runs as the system user "postgres".'])
    expect(statSync(server.clusterDir).uid).not.toBe(0)
    await server.stop()
  })

  it('puts the data where that user can get, below a folder closed to it', async () => {
    const folder = newFolder(0o700)
    const lines: string[] = []
    const options = {
      dataDir: folder,
      log: { ...silentLog, info: (_facts: object, message: string) => lines.push(message) },
    }
    const server = await startEmbeddedPostgres(options)
    folders.push(dirname(server.clusterDir))
    expect(server.clusterDir).toMatch(/^\/var\/lib\/millrace\/[0-9a-f]{12}\/pgdata$/)
    expect(lines).toEqual([expect.stringContaining(`Its data is in ${server.clusterDir}`)])
    await query(server.url, 'create table public.here (id int)')
    await server.stop()
    const again = await startEmbeddedPostgres(options)
    expect(await query(again.url, 'select * from public.here')).toEqual([])
    await again.stop()
  })
})
