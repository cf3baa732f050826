import { PGlite } from '@electric-sql/pglite'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

/** A migrated database; `close` is for when `db` has been closed, as a transport does that owns it. */
export interface OpenedDb {
  db: Db
  close(): Promise<void>
}

/** The drivers that a bus can listen on. */
export const openDrivers: { name: string; open(): Promise<OpenedDb> }[] = [
  {
    name: 'node-postgres',
    async open() {
      const { url, drop } = await createMigratedDatabase()
      return { db: createNodePostgresDb({ url }), close: drop }
    },
  },
  {
    name: 'neon-ws',
    async open() {
      const { url, drop } = await createMigratedDatabase()
      const gateway = await startGateway(url)
      const close = async (): Promise<void> => {
        await gateway.close()
        await drop()
      }
      return { db: createNodeNeonWsDb({ url, gateway }), close }
    },
  },
  {
    name: 'pglite',
    async open() {
      const pglite = new PGlite()
      const db = createPgliteDb({ pglite })
      await migrate(db, { files: await readMigrationFiles() })
      return { db, close: () => pglite.close() }
    },
  },
]
