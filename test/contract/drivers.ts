import { afterAll, beforeAll, describe } from 'vitest'
import { createNeonFetchDb } from '../../src/db/drivers/neon-fetch.ts'
import { createNeonHttpDb } from '../../src/db/drivers/neon-http.ts'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Capabilities, Db } from '../../src/db/port.ts'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import type { TestDatabase } from '../support/database.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { emptyPglite, pgliteStartMs } from '../support/pglite.ts'

/** What the suites may ask of a driver: its capabilities, and those of what is below it. */
export interface BindingCapabilities extends Capabilities {
  /** Several sessions at once, so that one can wait for another. */
  sessions: boolean
}

/** A migrated database, and the ways into it. */
export interface ContractDatabase {
  db: Db
  /** Another Db of the same driver on the same database, which the test closes; not on PGlite. */
  another(options?: { schema?: string; maxConnections?: number }): Db
  /** The URL for helpers that need `pg`; not on PGlite. */
  url: string
  close(): Promise<void>
}

/** One of the five drivers, as the suites see it. */
export interface Binding {
  name: string
  capabilities: BindingCapabilities
  create(): Promise<ContractDatabase>
}

const full: BindingCapabilities = { interactiveTx: true, listen: true, sessionLocks: true, sessions: true }

const bindings: Binding[] = [
  { name: 'node-postgres', capabilities: full, create: () => onServer((url) => createNodePostgresDb(url)) },
  { name: 'neon-ws', capabilities: full, create: () => throughGateway(createNodeNeonWsDb) },
  {
    name: 'neon-http',
    capabilities: { interactiveTx: false, listen: false, sessionLocks: false, sessions: true },
    create: () => throughGateway(createNeonHttpDb),
  },
  {
    name: 'neon-fetch',
    capabilities: { interactiveTx: false, listen: false, sessionLocks: false, sessions: true },
    create: () => throughGateway(createNeonFetchDb),
  },
  { name: 'pglite', capabilities: { ...full, sessions: false }, create: onPglite },
]

interface Address {
  url: string
  schema?: string
  maxConnections?: number
}

async function onServer(open: (address: Address) => Db): Promise<ContractDatabase> {
  const database = await createMigratedDatabase()
  return onDatabase(database, open, () => database.drop())
}

async function throughGateway(
  open: (address: Address & { gateway: NeonGateway }) => Db,
): Promise<ContractDatabase> {
  const database = await createMigratedDatabase()
  const gateway = await startGateway(database.url)
  return onDatabase(
    database,
    (address) => open({ ...address, gateway }),
    async () => {
      await gateway.close()
      await database.drop()
    },
  )
}

function onDatabase(
  database: TestDatabase,
  open: (address: Address) => Db,
  cleanUp: () => Promise<void>,
): ContractDatabase {
  const db = open({ url: database.url })
  return {
    db,
    url: database.url,
    another: (options) => open({ url: database.url, ...options }),
    async close() {
      await db.close()
      await cleanUp()
    },
  }
}

async function onPglite(): Promise<ContractDatabase> {
  const db = createPgliteDb({ pglite: await emptyPglite() })
  await migrate(db, { files: await readMigrationFiles() })
  const one = (): never => {
    throw new Error('PGlite has one session: ask for the capability "sessions"')
  }
  return {
    db,
    another: one,
    get url() {
      return one()
    },
    close: () => db.close(),
  }
}

/**
 * Runs a suite against every driver that can do what it needs, on a fresh migrated database each.
 * What a driver cannot do is skipped, and printed with the reason.
 *
 * @param suite is given a function that returns the suite's database while tests run
 */
export function describeOnEveryDriver(
  name: string,
  suite: (given: () => ContractDatabase, binding: Binding) => void,
  options: { needs?: (keyof BindingCapabilities)[] } = {},
): void {
  for (const binding of bindings) {
    const lacks = (options.needs ?? []).filter((need) => !binding.capabilities[need])
    if (lacks.length > 0) {
      process.stderr.write(`not on ${binding.name}: ${name} (it lacks ${lacks.join(', ')})\n`)
      continue
    }
    describe(`${name} on ${binding.name}`, () => {
      let database: ContractDatabase | undefined
      beforeAll(async () => {
        database = await binding.create()
      }, pgliteStartMs)
      afterAll(() => database?.close())
      suite(() => {
        if (database === undefined) throw new Error('the database is there only while tests run')
        return database
      }, binding)
    })
  }
}
