import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import { startEmbeddedPostgres } from '../../src/embedded/embedded-postgres.ts'
import { silentLog } from '../../src/system-ports.ts'
import { startReceiver, type Receiver } from './receiver-process.ts'

/** SQLSTATE. */
const objectInUse = '55006'

/** A fresh Postgres (the one that the tests bring, fsync on) and a receiver in a process of its own. */
export interface Lab {
  receiver: Receiver
  /** As `SHOW server_version` has it. */
  postgresVersion: string
  /** A database of its own for each part, so that none leaves work for another's autovacuum. */
  openBase(name: string, options?: BaseOptions): Promise<Base>
  close(): Promise<void>
}

/** How to open a database. */
export interface BaseOptions {
  /** The most connections of Millrace's pool. Default 20. */
  maxConnections?: number
}

/** A database with Millrace in it. */
export interface Base {
  url: string
  db: Db
  /** The same driver, without anything around it. */
  pool: pg.Pool
  /** Statements that clients have sent since the last call, as pg_stat_statements counts them. */
  countStatements(): Promise<number>
  /** Closes everything and drops the database. */
  close(): Promise<void>
}

export async function openLab(): Promise<Lab> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  return openIn(dataDir).catch(async (error: unknown) => {
    await rm(dataDir, { recursive: true, force: true })
    throw error
  })
}

async function openIn(dataDir: string): Promise<Lab> {
  const server = await startEmbeddedPostgres({
    dataDir,
    log: silentLog,
    settings: { shared_preload_libraries: 'pg_stat_statements' },
  })
  const admin = new pg.Client({ connectionString: server.url })
  admin.on('error', lost)
  await admin.connect()
  await admin.query('create extension pg_stat_statements')
  const { rows } = await admin.query<{ server_version: string }>('show server_version')
  const receiver = await startReceiver()
  return {
    receiver,
    postgresVersion: rows[0]!.server_version,
    openBase: (name, options) => openBase(admin, server.url, name, options),
    async close() {
      receiver.stop()
      await admin.end().catch(lost)
      await server.stop()
      // started as root, the server keeps its data where its own user can enter
      for (const folder of [dirname(server.clusterDir), dataDir])
        await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A connection that is lost while it is idle: whoever uses it next hears of it. */
function lost(): void {}

async function openBase(
  admin: pg.Client,
  serverUrl: string,
  name: string,
  { maxConnections = 20 }: BaseOptions = {},
): Promise<Base> {
  await admin.query(`create database ${admin.escapeIdentifier(name)}`)
  const address = new URL(serverUrl)
  address.pathname = `/${name}`
  const url = address.href
  const db = createNodePostgresDb({ url, maxConnections })
  await migrate(db, { files: await readMigrationFiles() })
  const pool = new pg.Pool({ connectionString: url, max: maxConnections })
  pool.on('error', lost)
  return {
    url,
    db,
    pool,
    countStatements: () => countStatements(admin, name),
    async close() {
      await db.close()
      await pool.end()
      await dropBase(admin, name)
    },
  }
}

/**
 * Not by force: sessions that are just ending would take that for an error. What still has one after a while stays
 * until the server goes.
 */
async function dropBase(admin: pg.Client, name: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    const gone = await admin.query(`drop database ${admin.escapeIdentifier(name)}`).then(
      () => true,
      (error: { code?: string }) => {
        if (error.code !== objectInUse) throw error
        return false
      },
    )
    if (gone) return
    await delay(100)
  }
}

/** Counted at the server, for one database; only what clients send, not what functions run inside. */
async function countStatements(admin: pg.Client, name: string): Promise<number> {
  const { rows } = await admin.query<{ calls: string }>(
    `select coalesce(sum(s.calls), 0)::text as calls from pg_stat_statements s
       join pg_database d on d.oid = s.dbid where d.datname = $1 and s.toplevel`,
    [name],
  )
  await admin.query('select pg_stat_statements_reset()')
  return Number(rows[0]?.calls)
}
