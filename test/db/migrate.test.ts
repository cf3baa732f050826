import { sql } from 'drizzle-orm'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import { assertMigrated, checkMigrations } from '../../src/db/migrate/check-migrations.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import type { MigrationFile } from '../../src/db/migrate/migration-file.ts'
import { objectsOf } from '../../src/db/migrate/objects.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import { qualified, runQuery } from '../../src/db/run.ts'
import { createTestDatabase } from '../support/database.ts'
import { emptyPglite, pgliteStartMs } from '../support/pglite.ts'

const files = await readMigrationFiles()
const names = files.map((file) => file.name)

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

async function emptyDatabase(): Promise<string> {
  const database = await createTestDatabase()
  cleanUps.push(() => database.drop())
  return database.url
}

function open(url: string, schema?: string): Db {
  const db = createNodePostgresDb({ url, schema, maxConnections: 2 })
  cleanUps.push(() => db.close())
  return db
}

beforeAll(() => emptyPglite(), pgliteStartMs)

/** How to get an empty database: on a server, and inside the process. */
const places: { name: string; create: (schema?: string) => Promise<Db> }[] = [
  { name: 'a server', create: async (schema) => open(await emptyDatabase(), schema) },
  {
    name: 'PGlite',
    create: async (schema) => {
      const pglite = await emptyPglite()
      const db = createPgliteDb({ pglite, schema })
      cleanUps.push(() => db.close())
      return db
    },
  },
]

async function tablesIn(db: Db): Promise<string[]> {
  const rows = await runQuery<{ name: string }>(
    db,
    sql`select c.relname::text as name from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = ${db.schema} and c.relkind = 'r'`,
  )
  return rows.map((row) => row.name)
}

async function installations(db: Db): Promise<{ id: string; environment: string | null }[]> {
  return runQuery(db, sql`select id::text, environment from ${qualified(db, 'installation')}`)
}

describe.each(places)('migrating $name', ({ create }) => {
  it('applies all files in order, and the next time nothing', async () => {
    const db = await create()
    expect(await migrate(db, { files, environment: 'staging' })).toEqual({ applied: names, already: [] })
    expect(await migrate(db, { files, environment: 'other' })).toEqual({ applied: [], already: names })
    expect(await installations(db)).toMatchObject([{ environment: 'staging' }])
    await expect(assertMigrated(db, files)).resolves.toBeUndefined()
  })

  it('puts everything into the schema that is set, and nothing elsewhere', async () => {
    const db = await create('events_of_mine')
    await migrate(db, { files })
    expect(await tablesIn(db)).toContain('events')
    const strays = await runQuery(
      db,
      sql`select nspname::text from pg_catalog.pg_namespace where nspname = 'millrace'`,
    )
    expect(strays).toEqual([])
    const [published] = await runQuery<{ o_replayed: boolean }>(
      db,
      sql`call ${qualified(db, 'publish')}('s', array['t'], array[null], array['1'], array[null], null, null)`,
    )
    expect(published?.o_replayed).toBe(false)
  })

  it('serves ten callers at once: one applies, the others find it done', async () => {
    const db = await create()
    const all = await Promise.all(Array.from({ length: 10 }, () => migrate(db, { files })))
    expect(all.filter((one) => one.applied.length > 0)).toEqual([{ applied: names, already: [] }])
    expect(await installations(db)).toHaveLength(1)
  })

  it('names what has gone since, and calls nothing up to date that lacks it', async () => {
    const db = await create()
    await migrate(db, { files })
    const change = (statement: string) => db.drizzle.execute(sql.raw(statement))
    await change(`alter table "millrace"."dedupe_keys" rename to x`)
    await change(`drop function "millrace"."wake_queue"`)
    expect((await checkMigrations(db, files)).lacking).toEqual(['table dedupe_keys', 'function wake_queue'])
    const error = {
      code: 'NOT_MIGRATED',
      message: expect.stringContaining('lacks the table dedupe_keys, the function wake_queue') as string,
      details: { schema: 'millrace', lacking: ['table dedupe_keys', 'function wake_queue'] },
    }
    await expect(assertMigrated(db, files)).rejects.toMatchObject(error)
    await expect(migrate(db, { files })).rejects.toMatchObject(error)
    await expect(migrate(db, { files, dryRun: true })).rejects.toMatchObject(error)
  })

  it('tells in a dry run what it would do, and does nothing', async () => {
    const db = await create()
    expect(await migrate(db, { files, dryRun: true })).toEqual({ applied: names, already: [] })
    expect(await tablesIn(db)).toEqual([])
    expect(await checkMigrations(db, files)).toMatchObject({ already: [], missing: names })
    await expect(assertMigrated(db, files)).rejects.toMatchObject({ code: 'NOT_MIGRATED' })
  })

  it('applies only what is new, and rows survive it', async () => {
    const db = await create()
    const added: MigrationFile = {
      name: '9000_added',
      sql: 'alter table "millrace"."streams" add column "added" text;--> statement-breakpoint\nselect 1;',
    }
    await migrate(db, { files })
    await runQuery(db, sql`insert into ${qualified(db, 'streams')} (name) values ('kept')`)
    const later = await migrate(db, { files: [...files, added] })
    expect(later).toEqual({ applied: ['9000_added'], already: names })
    expect(
      await runQuery(db, sql`select name, added from ${qualified(db, 'streams')} where name = 'kept'`),
    ).toEqual([{ name: 'kept', added: null }])
  })

  it('leaves nothing of a file that fails, keeps those before it, and names it', async () => {
    const db = await create()
    const broken: MigrationFile = {
      name: '9000_broken',
      sql: 'create table "millrace"."half" (id int);\nselect 1/0;',
    }
    await expect(migrate(db, { files: [...files, broken] })).rejects.toMatchObject({
      message: expect.stringContaining('9000_broken') as string,
      details: { migration: '9000_broken', sqlState: '22012' },
    })
    expect(await tablesIn(db)).not.toContain('half')
    expect(await checkMigrations(db, files)).toMatchObject({ already: names, missing: [] })
    expect(await migrate(db, { files })).toEqual({ applied: [], already: names })
  })

  it('refuses a file that changed after it was applied', async () => {
    const db = await create()
    await migrate(db, { files })
    const changed = files.map((file, index) => (index === 1 ? { ...file, sql: `${file.sql}\n` } : file))
    const refused = { code: 'MIGRATION_CHANGED', details: { changed: [names[1]] } }
    await expect(migrate(db, { files: changed })).rejects.toMatchObject(refused)
    await expect(assertMigrated(db, changed)).rejects.toMatchObject(refused)
  })

  it('refuses a database that a newer version has migrated', async () => {
    const db = await create()
    await migrate(db, { files })
    const refused = {
      code: 'NOT_MIGRATED',
      message: expect.stringContaining('newer') as string,
      details: { unknown: [names.at(-1)] },
    }
    await expect(migrate(db, { files: files.slice(0, -1) })).rejects.toMatchObject(refused)
    await expect(assertMigrated(db, files.slice(0, -1))).rejects.toMatchObject(refused)
  })
})

describe('migrating from several processes', () => {
  it('applies each file once, each on its own connection', async () => {
    const url = await emptyDatabase()
    const processes = Array.from({ length: 10 }, () => open(url))
    const all = await Promise.all(processes.map((db) => migrate(db, { files })))
    expect(all.filter((one) => one.applied.length > 0)).toEqual([{ applied: names, already: [] }])
    expect(all.filter((one) => one.already.length === names.length)).toHaveLength(9)
  })

  it('does not wait for another schema of the database', async () => {
    const url = await emptyDatabase()
    const other = await open(url).connectDirect()
    cleanUps.push(() => other.close())
    await other.query(`select pg_advisory_lock(hashtextextended('millrace.migrate:millrace', 0))`)
    const mine = open(url, 'mine')
    expect((await migrate(mine, { files })).applied).toEqual(names)
  })

  it('leaves no lock and no session behind', async () => {
    const url = await emptyDatabase()
    const db = open(url)
    await migrate(db, { files })
    const left = await runQuery(
      db,
      sql`select 1 from pg_catalog.pg_stat_activity a
        where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'`,
    )
    expect(left).toEqual([])
  })
})

describe('the migration files', () => {
  it('write the schema in double quotes everywhere, so that another name can be put in', () => {
    const unquoted = files.flatMap(({ name, sql: text }) =>
      text
        .split('\n')
        .filter((line) => !line.trimStart().startsWith('--'))
        // names of a setting of the session and of a stream, not of the schema
        .map((line) =>
          line.replaceAll('"millrace"', '').replaceAll(/millrace\.held|'millrace\.webhooks'/g, ''),
        )
        .filter((line) => line.includes('millrace'))
        .map((line) => `${name}: ${line}`),
    )
    expect(unquoted).toEqual([])
  })

  it('only ever add: outside of the functions they make, nothing is dropped or deleted', () => {
    const destructive = files.flatMap(({ name, sql: text }) =>
      text
        .replace(/AS \$\$[^]*?\$\$/g, '')
        .split('\n')
        .filter((line) => /^\s*(DROP|DELETE|TRUNCATE)\b|\bDROP (COLUMN|CONSTRAINT)\b/i.test(line))
        .map((line) => `${name}: ${line}`),
    )
    expect(destructive).toEqual([])
  })
})

describe('what the migrations make', () => {
  it('is read from them, without what a later one drops again', () => {
    const text = 'CREATE TABLE "millrace"."a" (id int);\nCREATE FUNCTION "millrace"."f"() RETURNS int\n'
    const later = 'DROP TABLE "millrace"."a";\nCREATE OR REPLACE FUNCTION "millrace"."g"() RETURNS int'
    const named = (...texts: string[]) =>
      objectsOf(texts.map((sql) => ({ name: 'x', sql }))).map(({ kind, name }) => `${kind} ${name}`)
    expect(named(text)).toEqual(['table a', 'function f'])
    expect(named(text, later)).toEqual(['function f', 'function g'])
  })

  it('is all that the schema then holds', async () => {
    const db = open(await emptyDatabase())
    await migrate(db, { files })
    const rows = await runQuery<{ name: string }>(
      db,
      sql`select case c.relkind when 'r' then 'table ' else 'sequence ' end || c.relname as name
          from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
          where n.nspname = ${db.schema} and c.relkind in ('r', 'S') and not exists (
            select 1 from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'i')
        union all
        select case p.prokind when 'f' then 'function ' else 'procedure ' end || p.proname
          from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
          where n.nspname = ${db.schema}`,
    )
    const made = objectsOf(files).map(({ kind, name }) => `${kind} ${name}`)
    expect(rows.map(({ name }) => name).toSorted()).toEqual(made.toSorted())
  })
})
