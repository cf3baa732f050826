import { join, resolve } from 'node:path'
import { createNodePostgresDb } from '../db/drivers/node-postgres.ts'
import { openDb } from '../db/drivers/open.ts'
import { migrate, type Migrated } from '../db/migrate/migrate.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Db } from '../db/port.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../embedded/embedded-postgres.ts'
import { lockPgliteFolder } from '../embedded/pglite-lock.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'
import type { Settings } from '../settings.ts'

/** A database that this process has opened. */
export interface OpenedDatabase {
  db: Db
  /** What it is, for a person: `embedded Postgres in .millrace`. */
  description: string
  /** Closes the pool, and stops an embedded server that this process started. */
  close(): Promise<void>
}

/** What {@link openDatabase} takes beside the settings. */
export interface OpenOptions {
  log: Log
  applicationName: string
  /** Told what takes a while, in one line. */
  progress?: (line: string) => void
}

/** Opens the database that the settings name: DATABASE_URL, or the embedded one. */
export function openDatabase(settings: Settings, options: OpenOptions): Promise<OpenedDatabase> {
  if (settings.databaseUrl !== null) return openByUrl(settings, settings.databaseUrl, options)
  return settings.embedded === 'pglite' ? openPglite(settings) : openEmbedded(settings, options)
}

/** Brings the tables up to this version; several processes may do so at once. */
export async function migrateDatabase(db: Db, settings: Settings): Promise<Migrated> {
  return migrate(db, { files: await readMigrationFiles(), environment: settings.environment })
}

async function openByUrl(settings: Settings, url: string, options: OpenOptions): Promise<OpenedDatabase> {
  const { schema, directUrl, environment } = settings
  const { applicationName } = options
  const db = await openDb({
    url,
    directUrl: directUrl ?? undefined,
    schema,
    environment,
    applicationName,
  })
  const { hostname, port, pathname } = new URL(url)
  const description = `Postgres at ${hostname}${port === '' ? '' : `:${port}`}${pathname}`
  return { db, description, close: () => db.close() }
}

async function openEmbedded(settings: Settings, options: OpenOptions): Promise<OpenedDatabase> {
  options.progress?.(
    `Starting the embedded Postgres in ${settings.dataDir} (the first time takes some seconds) …`,
  )
  const server = await startEmbeddedPostgres({ dataDir: settings.dataDir, log: options.log }).catch(
    explainFolder,
  )
  const db = createNodePostgresDb({
    url: server.url,
    schema: settings.schema,
    environment: settings.environment,
    applicationName: options.applicationName,
  })
  return {
    db,
    description: describeServer(settings.dataDir, server),
    async close() {
      await db.close()
      await server.stop()
    },
  }
}

/** As root, a folder that the database's user cannot enter is replaced by another: say where the data is. */
function describeServer(dataDir: string, { clusterDir, attached }: EmbeddedPostgres): string {
  const place = clusterDir.startsWith(resolve(dataDir)) ? dataDir : clusterDir
  return `embedded Postgres in ${place}${attached ? ' (was running already)' : ''}`
}

const folderProblems: Record<string, string> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it is on a read-only file system',
  ENOTDIR: 'it, or what it lies in, is not a folder',
  EEXIST: 'it is not a folder',
  ENOENT: 'what it lies in does not exist',
  ENOSPC: 'the disk is full',
}

/** A folder that cannot be used is a setting to change, not a stack trace. */
function explainFolder(error: unknown): never {
  const { code, path } = error as { code?: unknown; path?: unknown }
  const problem = typeof code === 'string' ? folderProblems[code] : undefined
  if (problem === undefined || isMillraceError(error)) throw error
  const where = typeof path === 'string' ? ` (${path})` : ''
  throw new MillraceError(
    'INVALID_SETTING',
    `the data folder cannot be used: ${problem}${where}; set MILLRACE_DATA_DIR`,
    {
      details: { setting: 'MILLRACE_DATA_DIR' },
      cause: error,
    },
  )
}

async function openPglite(settings: Settings): Promise<OpenedDatabase> {
  const folder = join(settings.dataDir, 'pglite')
  const { createPgliteDb } = await loadPgliteDriver()
  const lock = await lockPgliteFolder(folder)
  const { schema, environment } = settings
  const db = createPgliteDb({ dataDir: folder, schema, environment })
  return {
    db,
    description: `PGlite in ${folder}`,
    async close() {
      await db.close()
      lock.release()
    },
  }
}

/** Its package is optional: nobody else's process may need it to start. */
function loadPgliteDriver() {
  return import('../db/drivers/pglite.ts').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new MillraceError(
      'INVALID_SETTING',
      'the package "@electric-sql/pglite" is not installed. Run `npm install @electric-sql/pglite`, or leave MILLRACE_EMBEDDED away.',
      { details: { setting: 'MILLRACE_EMBEDDED' }, cause },
    )
  })
}
