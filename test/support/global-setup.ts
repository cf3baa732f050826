import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.ts'
import { livePostmaster } from '../../src/embedded/postmaster.ts'
import { processExists } from '../../src/embedded/process-identity.ts'
import type { Log } from '../../src/ports.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server of this run, as a role that may create databases. */
    adminUrl: string
    /** The start of the name of every database that this run makes. */
    databasePrefix: string
  }
}

const FOLDER = 'millrace-test-'

/**
 * One Postgres for the whole run: the one that npm brought, or the one that
 * MILLRACE_TEST_DATABASE_URL names (its role must be allowed to create databases).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.MILLRACE_TEST_DATABASE_URL
  const server = given === undefined ? await startOwnServer() : { url: given, stop: async () => {} }
  const prefix = `mt_${randomBytes(4).toString('hex')}_`
  project.provide('adminUrl', server.url)
  project.provide('databasePrefix', prefix)
  return async () => {
    // What a crashed test left would stay on a server that is not ours.
    if (given !== undefined) await dropDatabases(given, prefix)
    await server.stop()
  }
}

async function startOwnServer(): Promise<{ url: string; stop(): Promise<void> }> {
  say('Starting Postgres for the tests (MILLRACE_TEST_DATABASE_URL would name another one) …')
  await removeLeftovers()
  const folder = await mkdtemp(join(tmpdir(), `${FOLDER}${process.pid}-`))
  // The system user that runs Postgres when we are root has to get in.
  await chmod(folder, 0o755)
  const server = await startEmbeddedPostgres({
    dataDir: folder,
    settings: {
      max_connections: 300,
      max_prepared_transactions: 50,
      // It lives for one run and on no other machine: nothing has to outlast a power cut, and to make and drop a
      // database takes half the time. What is killed in tests is a process, which loses nothing by this.
      fsync: 'off',
      full_page_writes: 'off',
      // counts statements for those tests that say how many there are
      shared_preload_libraries: 'pg_stat_statements',
    },
    log: problemsOnly,
  })
  await hashPasswordFast(server.url)
  const atExit = (): void => endAtOnce(server.clusterDir, folder)
  process.once('exit', atExit)
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
  return {
    url: server.url,
    stop: async () => {
      await server.stop()
      process.removeListener('exit', atExit)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Each login works off the iterations of its password's hash. Neon's driver takes 200 ms for the usual 4096, and the
 * tests log in some thousand times with a password that guards nothing.
 */
async function hashPasswordFast(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('set scram_iterations = 1')
    const { username, password } = new URL(url)
    await client.query(
      `alter role ${client.escapeIdentifier(username)} password ${client.escapeLiteral(password)}`,
    )
  } finally {
    await client.end()
  }
}

/** The way out when the run was interrupted: nothing can be awaited any more, and the data is worth nothing. */
function endAtOnce(clusterDir: string, folder: string): void {
  try {
    process.kill(Number(readFileSync(join(clusterDir, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGQUIT')
  } catch {
    // It is gone already.
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Ends the servers of runs that were killed, and removes their folders. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(name.startsWith(FOLDER) ? name.slice(FOLDER.length).split('-')[0] : Number.NaN)
    if (!Number.isInteger(pid) || processExists(pid)) continue
    const folder = join(tmpdir(), name)
    const postmaster = await livePostmaster(join(folder, 'pgdata'))
    if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGQUIT')
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function dropDatabases(adminUrl: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl })
  await client.connect()
  try {
    const found = await client.query<{ datname: string }>(
      'select datname from pg_catalog.pg_database where starts_with(datname, $1)',
      [prefix],
    )
    for (const { datname } of found.rows) {
      await client.query(`drop database if exists ${client.escapeIdentifier(datname)} with (force)`)
    }
  } finally {
    await client.end()
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

const problemsOnly: Log = {
  debug() {},
  info() {},
  warn: (_facts, message) => say(message),
  error: (_facts, message) => say(message),
}
