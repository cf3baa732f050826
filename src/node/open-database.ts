import { join } from 'node:path'
import { createNodePostgresDb } from '../db/drivers/node-postgres.ts'
import { createPgliteDb } from '../db/drivers/pglite.ts'
import { migrate, type Migrated } from '../db/migrate/migrate.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Db } from '../db/port.ts'
import { startEmbeddedPostgres } from '../embedded/embedded-postgres.ts'
import { lockPgliteFolder } from '../embedded/pglite-lock.ts'
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
  const { schema, directUrl } = settings
  const { applicationName } = options
  const db = createNodePostgresDb({ url, directUrl: directUrl ?? undefined, schema, applicationName })
  const { hostname, port, pathname } = new URL(url)
  const description = `Postgres at ${hostname}${port === '' ? '' : `:${port}`}${pathname}`
  return { db, description, close: () => db.close() }
}

async function openEmbedded(settings: Settings, options: OpenOptions): Promise<OpenedDatabase> {
  options.progress?.(
    `Starting the embedded Postgres in ${settings.dataDir} (the first time takes some seconds) …`,
  )
  const server = await startEmbeddedPostgres({ dataDir: settings.dataDir, log: options.log })
  const db = createNodePostgresDb({
    url: server.url,
    schema: settings.schema,
    applicationName: options.applicationName,
  })
  return {
    db,
    description: `embedded Postgres in ${settings.dataDir}${server.attached ? ' (was running already)' : ''}`,
    async close() {
      await db.close()
      await server.stop()
    },
  }
}

async function openPglite(settings: Settings): Promise<OpenedDatabase> {
  const folder = join(settings.dataDir, 'pglite')
  const lock = await lockPgliteFolder(folder)
  const db = await createPgliteDb({ dataDir: folder, schema: settings.schema })
  return {
    db,
    description: `PGlite in ${folder}`,
    async close() {
      await db.close()
      lock.release()
    },
  }
}
