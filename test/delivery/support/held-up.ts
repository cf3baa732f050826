import { sql } from 'drizzle-orm'
import pg from 'pg'
import type { Db } from '../../../src/db/port.ts'
import type { World } from './world.ts'

const role = 'millrace_held_up'

/**
 * Holds a statement up between its snapshot and its first look at a webhook: a policy that applies to its
 * role only waits for a lock. Meanwhile the world changes; then the statement goes on.
 */
export async function heldUp<T>(
  world: World,
  statement: (db: Db) => Promise<T>,
  meanwhile: () => Promise<unknown>,
): Promise<T> {
  await world.sql(`create function public.hold() returns boolean language plpgsql volatile as
    $$ begin perform pg_catalog.pg_advisory_xact_lock_shared(42); return true; end $$`)
  await world.sql('create policy held_up on millrace.webhooks using (public.hold())')
  await world.sql('alter table millrace.webhooks enable row level security')
  const gate = new pg.Client({ connectionString: world.url })
  await gate.connect()
  world.onClose(() => gate.end())
  await gate.query('begin')
  await ensureRole(world)
  await gate.query('select pg_catalog.pg_advisory_xact_lock(42)')
  const running = world.db.transaction(async (tx) => {
    await tx.drizzle.execute(sql.raw(`set local role ${role}`))
    return statement({ ...world.db, ...tx })
  })
  await world.until(
    `select from pg_catalog.pg_locks l join pg_catalog.pg_database d on d.oid = l.database
     where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
    (waiting) => waiting.length > 0,
  )
  await meanwhile()
  await gate.query('commit')
  return running
}

/** A role belongs to the whole server: it stays, with no rights left once the test's database is dropped. */
async function ensureRole(world: World): Promise<void> {
  await world.sql(
    `do $$ begin create role ${role}; exception when duplicate_object or unique_violation then null; end $$`,
  )
  await world.sql(`grant usage on schema millrace, public to ${role}`)
  await world.sql(`grant all on all tables in schema millrace to ${role}`)
  await world.sql(`grant usage on all sequences in schema millrace to ${role}`)
  await world.sql(`grant execute on all routines in schema millrace to ${role}`)
}
