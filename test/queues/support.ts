import { readFileSync } from 'node:fs'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import type { Db } from '../../src/db/port.ts'
import { defineTables } from '../../src/schema/tables.ts'
import { createTestDatabase } from '../support/database.ts'

const folder = new URL('../../drizzle/', import.meta.url)

async function migrate(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const journal = JSON.parse(readFileSync(new URL('meta/_journal.json', folder), 'utf8')) as {
    entries: { tag: string }[]
  }
  for (const { tag } of journal.entries) {
    for (const part of readFileSync(new URL(`${tag}.sql`, folder), 'utf8').split('--> statement-breakpoint'))
      await client.query(part)
  }
  await client.end()
}

/** A migrated database of its own. */
export interface OpenDb {
  db: Db
  /** For what no function of Millrace does: looking into tables, sessions of one's own. */
  pool: pg.Pool
  url: string
  close(): Promise<void>
}

export async function openDb(): Promise<OpenDb> {
  const database = await createTestDatabase({ template: { name: 'queues', prepare: migrate } })
  const pool = new pg.Pool({ connectionString: database.url, max: 20 })
  const tables = defineTables()
  const db = {
    driver: 'node-postgres',
    drizzle: drizzle(pool),
    tables,
    schema: 'millrace',
    capabilities: { interactiveTx: true, listen: true, sessionLocks: true },
    transaction: (work: (tx: unknown) => Promise<unknown>) =>
      drizzle(pool).transaction((tx) => work({ drizzle: tx, tables, schema: 'millrace' })),
  } as unknown as Db
  return {
    db,
    pool,
    url: database.url,
    close: async () => {
      await pool.end()
      await database.drop()
    },
  }
}

/**
 * Drives a queue's clock: to move every time that is stored back is to move the database's clock on,
 * for nothing else decides (Q6).
 */
export async function passTime(open: Pick<OpenDb, 'pool'>, queue: string, ms: number): Promise<void> {
  await open.pool.query(
    `with q as (select id from millrace.queues where name = $1),
      keys as (update millrace.dedupe_keys set expires_at = expires_at - $2 * interval '1 ms' where queue_id in (select id from q))
    update millrace.messages set due_at = due_at - $2 * interval '1 ms' where queue_id in (select id from q)`,
    [queue, ms],
  )
}

/** What is in the table, by number. */
export async function messageStates(
  open: Pick<OpenDb, 'pool'>,
  queue: string,
): Promise<{ id: number; state: string; key: string | null; attempts: number }[]> {
  const { rows } = await open.pool.query<{ id: string; state: string; key: string | null; attempts: number }>(
    `select m.id, m.state, m.key, m.attempts from millrace.messages m
      join millrace.queues q on q.id = m.queue_id where q.name = $1 order by m.id`,
    [queue],
  )
  return rows.map((row) => Object.assign(row, { id: Number(row.id) }))
}
