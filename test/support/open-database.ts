import { afterAll, beforeAll, describe } from 'vitest'
import { readdirSync, readFileSync } from 'node:fs'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import type { Db } from '../../src/db/port.ts'
import { defineTables } from '../../src/schema/tables.ts'
import { createTestDatabase, type TestTemplate } from './database.ts'

const template: TestTemplate = { name: 'pgdb', prepare: applyMigrations }

/** A fresh database with all migrations, and the port over node-postgres. */
export async function createMigratedDatabase(): Promise<{ url: string; db: Db; drop(): Promise<void> }> {
  const database = await createTestDatabase({ template })
  const db = openDatabase(database.url)
  return {
    url: database.url,
    db,
    drop: async () => {
      await db.close()
      await database.drop()
    },
  }
}

/** The port over a pool of node-postgres. */
export function openDatabase(url: string, max = 10): Db {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  const tables = defineTables()
  const on = drizzle(pool)
  return {
    drizzle: on,
    tables,
    schema: 'millrace',
    driver: 'node-postgres',
    capabilities: { interactiveTx: true, listen: true, sessionLocks: true },
    transaction: (work) => on.transaction((tx) => work({ drizzle: tx, tables, schema: 'millrace' })),
    connectDirect: () => Promise.reject(new Error('not here')),
    close: () => pool.end(),
  }
}

async function applyMigrations(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const file of readdirSync('drizzle')
      .filter((name) => name.endsWith('.sql'))
      .toSorted()) {
      await client.query(readFileSync(`drizzle/${file}`, 'utf8'))
    }
  } finally {
    await client.end()
  }
}

export function describeOnEveryDriver(
  name: string,
  suite: (
    given: () => { db: Db; url: string; another(): Db },
    binding: { name: string; capabilities: { sessions: boolean } },
  ) => void,
  _options: { needs?: string[] } = {},
): void {
  describe(name, () => {
    let database: Awaited<ReturnType<typeof createMigratedDatabase>> | undefined
    beforeAll(async () => {
      database = await createMigratedDatabase()
    })
    afterAll(() => database?.drop())
    suite(() => ({ db: database!.db, url: database!.url, another: () => openDatabase(database!.url) }), {
      name: 'pg',
      capabilities: { sessions: true },
    })
  })
}
