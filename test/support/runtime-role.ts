import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { grantStatements } from '../../src/db/grants/grant-statements.ts'
import { createMigratedDatabase } from './migrated.ts'
import type { TestDatabase } from './database.ts'

/** A migrated database, and a role that has the printed grants on it and nothing else. */
export interface RuntimeRole {
  /** The database as the role sees it. */
  url: string
  /** The database as its owner sees it. */
  ownerUrl: string
  role: string
  drop(): Promise<void>
}

/** @param grants default: what `millrace grants` prints */
export async function createRuntimeRole(
  grants: (role: string) => string[] = grantStatements,
): Promise<RuntimeRole> {
  const database: TestDatabase = await createMigratedDatabase()
  const role = `app_${randomBytes(6).toString('hex')}`
  const password = randomBytes(9).toString('hex')
  await asOwner(database.url, [`create role ${role} login password '${password}'`, ...grants(role)])
  const url = new URL(database.url)
  url.username = role
  url.password = password
  // roles belong to the whole server, and outlive the database: it is dropped from the default one
  const elsewhere = new URL(database.url)
  elsewhere.pathname = '/postgres'
  return {
    url: url.href,
    ownerUrl: database.url,
    role,
    async drop() {
      await database.drop()
      await asOwner(elsewhere.href, [`drop role ${role}`])
    },
  }
}

async function asOwner(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}
