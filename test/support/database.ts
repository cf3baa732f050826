import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A database of one test or test file. */
export interface TestDatabase {
  url: string
  /** Ends every session in it and drops it. */
  drop(): Promise<void>
}

/** What new databases are copies of. */
export interface TestTemplate {
  /** Lower case letters and digits; one name stands for one content. */
  name: string
  /** Fills the template, once in the whole run. It must leave no connection open. */
  prepare(url: string): Promise<void>
}

/** An arbitrary number ("mill" in ASCII): the advisory lock under which templates are made. */
const TEMPLATE_LOCK = 0x6d696c6c

/**
 * Makes a fresh database, empty or copied from a template. Its `search_path` is
 * empty, so that a statement with an unqualified name fails in the tests
 * instead of at a user's.
 */
export async function createTestDatabase(options: { template?: TestTemplate } = {}): Promise<TestDatabase> {
  const prefix = inject('databasePrefix')
  return withAdmin(async (admin) => {
    const source =
      options.template === undefined ? 'template0' : await ensureTemplate(admin, prefix, options.template)
    const name = `${prefix}${randomBytes(6).toString('hex')}`
    await createDatabase(admin, name, source)
    return { url: urlOf(name), drop: () => withAdmin((client) => dropDatabase(client, name)) }
  })
}

/** A copy of a database, as a branch is one. Nobody may be connected to the original meanwhile. */
export async function copyDatabase(url: string): Promise<TestDatabase> {
  const name = `${inject('databasePrefix')}${randomBytes(6).toString('hex')}`
  await withAdmin((admin) => createDatabase(admin, name, new URL(url).pathname.slice(1)))
  return { url: urlOf(name), drop: () => withAdmin((client) => dropDatabase(client, name)) }
}

/** The admin URL of the run's server with another database in it. */
export function urlOf(database: string): string {
  const url = new URL(inject('adminUrl'))
  url.pathname = `/${database}`
  return url.href
}

async function ensureTemplate(admin: pg.Client, prefix: string, template: TestTemplate): Promise<string> {
  const name = `${prefix}t_${template.name}`
  if (await exists(admin, name)) return name
  await admin.query('select pg_catalog.pg_advisory_lock($1)', [TEMPLATE_LOCK])
  try {
    if (!(await exists(admin, name))) await makeTemplate(admin, name, template)
  } finally {
    await admin.query('select pg_catalog.pg_advisory_unlock($1)', [TEMPLATE_LOCK])
  }
  return name
}

/** Fills it under another name, so that nobody copies a half-filled one. */
async function makeTemplate(admin: pg.Client, name: string, template: TestTemplate): Promise<void> {
  const draft = `${name}_draft`
  await dropDatabase(admin, draft)
  await createDatabase(admin, draft, 'template0')
  await template.prepare(urlOf(draft))
  await admin.query(`alter database ${draft} rename to ${name}`)
}

async function exists(admin: pg.Client, name: string): Promise<boolean> {
  return (await admin.query('select 1 from pg_catalog.pg_database where datname = $1', [name])).rowCount === 1
}

async function createDatabase(admin: pg.Client, name: string, source: string): Promise<void> {
  await admin.query(`create database ${name} template ${source}`)
  await admin.query(`alter database ${name} set search_path to ''`)
}

async function dropDatabase(admin: pg.Client, name: string): Promise<void> {
  await admin.query(`drop database if exists ${name} with (force)`)
}

async function withAdmin<T>(action: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: inject('adminUrl') })
  await admin.connect()
  try {
    return await action(admin)
  } finally {
    await admin.end()
  }
}
