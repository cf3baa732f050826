import pg from 'pg'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import { createTestDatabase, type TestDatabase, type TestTemplate } from './database.ts'

/** A database at this version's migrations, as a user's would be after `millrace migrate`. */
export const migratedTemplate: TestTemplate = {
  name: 'migrated',
  async prepare(url) {
    const db = createNodePostgresDb({ url, maxConnections: 1 })
    try {
      await migrate(db, { files: await readMigrationFiles() })
    } finally {
      await db.close()
    }
  },
}

/** A fresh, migrated database. */
export function createMigratedDatabase(): Promise<TestDatabase> {
  return createTestDatabase({ template: migratedTemplate })
}

/** A session of a fresh, migrated database, for what is asked of its functions themselves. */
export async function openMigratedSession(): Promise<{ client: pg.Client; close(): Promise<void> }> {
  const database = await createMigratedDatabase()
  const client = new pg.Client(database.url)
  await client.connect()
  return {
    client,
    async close() {
      await client.end()
      await database.drop()
    },
  }
}
