import { MillraceError } from '../../errors/millrace-error.ts'
import type { Db, DirectConnection, Executor } from '../port.ts'
import { grantStatements } from '../grants/grant-statements.ts'
import { hashOf, sqlFor, type MigrationFile } from './migration-file.ts'
import { assertComplete, lackingObjects, objectsOf } from './objects.ts'
import { assertCompatible, compare, type AppliedMigration } from './plan.ts'

/** What {@link migrate} takes. */
export interface MigrateOptions {
  /** The migrations of this version, in order; see db/migrate/node-files.ts. */
  files: readonly MigrationFile[]
  /** Only tells what would be applied. Default false. */
  dryRun?: boolean
  /** Written into the installation row when this call makes it. Default none. */
  environment?: string | null
  /** Grants the role that Millrace runs as what it needs: see `grantStatements`. Default: nobody. */
  grantTo?: string
}

/** What {@link migrate} did. */
export interface Migrated {
  /** Applied by this call (in a dry run: would be), in order. */
  applied: string[]
  /** Applied before. */
  already: string[]
  /** The GRANTs given (in a dry run: that would be); absent without `grantTo`. */
  grants?: string[]
}

/**
 * Brings a database to this version. Any number of processes may call it at once: they take turns by a
 * session lock on a direct connection, and all but the first find nothing to do. Each file is a
 * transaction, together with its bookkeeping. In the end there is exactly one `installation` row. It only ever
 * adds: no rows are deleted.
 *
 * @throws MIGRATION_CHANGED, NOT_MIGRATED when a newer version has migrated it or something has been dropped since,
 *   TRANSACTION_UNSUPPORTED where the driver has no sessions
 */
export async function migrate(db: Db, options: MigrateOptions): Promise<Migrated> {
  const grants = options.grantTo === undefined ? undefined : grantStatements(options.grantTo, db.schema)
  if (!db.capabilities.sessionLocks) {
    throw new MillraceError(
      'TRANSACTION_UNSUPPORTED',
      `migrations need a session, which ${db.driver} does not have: use node-postgres or neon-ws`,
    )
  }
  return inTurn(db, async () => {
    const connection = await db.connectDirect()
    try {
      // the wait for the lock may be long, and so may a migration
      await connection.query('set statement_timeout = 0')
      return await whileLocked(connection, db.schema, () => run(db, connection, { ...options, grants }))
    } finally {
      await connection.close()
    }
  })
}

const turns = new WeakMap<Db, Promise<unknown>>()

/** PGlite's one session gets its own lock again at once, so calls within a process queue up here. */
async function inTurn<T>(db: Db, work: () => Promise<T>): Promise<T> {
  const mine = (turns.get(db) ?? Promise.resolve()).then(work, work)
  turns.set(db, mine)
  return mine
}

async function whileLocked<T>(
  connection: DirectConnection,
  schema: string,
  work: () => Promise<T>,
): Promise<T> {
  const lock = [`millrace.migrate:${schema}`]
  await connection.query('select pg_catalog.pg_advisory_lock(pg_catalog.hashtextextended($1, 0))', lock)
  try {
    return await work()
  } finally {
    // closing the session would do, but PGlite's stays; a failure here must not hide that of the work
    await connection
      .query('select pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended($1, 0))', lock)
      .catch(() => {})
  }
}

async function run(
  db: Executor,
  connection: DirectConnection,
  options: MigrateOptions & Pick<Migrated, 'grants'>,
): Promise<Migrated> {
  const { schema } = db
  const state = await compare(options.files, await readApplied(connection, schema))
  assertCompatible(state, schema)
  const made = objectsOf(options.files.filter(({ name }) => state.already.includes(name)))
  assertComplete(await lackingObjects(db, made), schema)
  const { grants } = options
  const result = { applied: state.missing, already: state.already, ...(grants && { grants }) }
  if (options.dryRun === true) return result
  for (const file of options.files) {
    if (state.missing.includes(file.name)) await apply(connection, schema, file)
  }
  await ensureInstallation(connection, schema, options.environment ?? null)
  if (grants !== undefined) await connection.execute(grants.join(';\n'))
  return result
}

async function readApplied(connection: DirectConnection, schema: string): Promise<AppliedMigration[]> {
  const [found] = await connection.query('select pg_catalog.to_regclass($1) is not null as found', [
    `"${schema}"."migrations"`,
  ])
  if (found?.found !== true) return []
  return (await connection.query(
    `select name, hash from "${schema}"."migrations"`,
  )) as unknown as AppliedMigration[]
}

/** As the first migration declares it, which comes after its own bookkeeping. */
function bookkeeping(schema: string): string {
  return `create schema if not exists "${schema}";
create table if not exists "${schema}"."migrations" (
  "name" text primary key not null,
  "hash" text not null,
  "applied_at" timestamp with time zone default clock_timestamp() not null
);`
}

/**
 * A script in one message is one transaction by itself. BEGIN would be worse: on PGlite's shared
 * session another caller's statement could get in between.
 */
async function apply(connection: DirectConnection, schema: string, file: MigrationFile): Promise<void> {
  const name = file.name.replaceAll("'", "''")
  try {
    await connection.execute(`set local client_min_messages = warning;
${bookkeeping(schema)}
${sqlFor(file, schema)}
;
insert into "${schema}"."migrations" (name, hash) values ('${name}', '${await hashOf(file)}');`)
  } catch (error) {
    throw named(error, file.name)
  }
}

function named(error: unknown, name: string): unknown {
  if (!(error instanceof MillraceError)) return error
  return new MillraceError(error.code, `migration ${name}: ${error.message}`, {
    details: { ...error.details, migration: name },
    cause: error.cause,
  })
}

async function ensureInstallation(
  connection: DirectConnection,
  schema: string,
  environment: string | null,
): Promise<void> {
  await connection.query(
    `insert into "${schema}"."installation" (environment) values ($1::text) on conflict do nothing`,
    [environment],
  )
}
