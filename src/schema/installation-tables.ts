import { sql } from 'drizzle-orm'
import { check, integer, text, uuid } from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz } from './column-types.ts'

/** Who this database is, which migrations it has had, and who may call the API. */
export function installationTables(schema: PgSchema) {
  /** One row. A branch or a restore is a copy of it, until `adopt` gives it an identity of its own. */
  const installation = schema.table(
    'installation',
    {
      singleton: integer('singleton').primaryKey().default(1),
      id: uuid('id')
        .notNull()
        .default(sql`gen_random_uuid()`),
      environment: text('environment'),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [check('installation_one_row', sql`${t.singleton} = 1`)],
  )

  /** Bookkeeping of the migrator; declared here so that `drizzle-kit push` knows that it belongs. */
  const migrations = schema.table('migrations', {
    name: text('name').primaryKey(),
    hash: text('hash').notNull(),
    appliedAt: timestamptz('applied_at')
      .notNull()
      .default(sql`clock_timestamp()`),
  })

  const apiKeys = schema.table('api_keys', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    /** SHA-256 of the key, in hex: the key itself is shown once and never stored. */
    hash: text('hash').notNull().unique(),
    scopes: text('scopes').array().notNull(),
    /** The key reaches only streams whose name begins like this; null: all. */
    streamPrefix: text('stream_prefix'),
    createdAt: timestamptz('created_at')
      .notNull()
      .default(sql`clock_timestamp()`),
  })

  return { installation, migrations, apiKeys }
}
