import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

/** A migrated database of its own. */
export interface OpenDb {
  db: Db
  /** For what no function of Millrace does: looking into tables, sessions of one's own. */
  pool: pg.Pool
  close(): Promise<void>
}

export async function openDb(): Promise<OpenDb> {
  const { url, drop } = await createMigratedDatabase()
  const db = createNodePostgresDb({ url, maxConnections: 20 })
  const pool = new pg.Pool({ connectionString: url })
  return {
    db,
    pool,
    async close() {
      await Promise.all([db.close(), pool.end()])
      await drop()
    },
  }
}

/**
 * The database of a suite about calls that share statements. The patience with one statement has no end there: on a
 * busy machine it would end before the answer, and another statement begin.
 */
export function openForSharing(): () => OpenDb {
  let open: OpenDb
  beforeAll(async () => {
    open = await openDb()
  })
  afterAll(() => open.close())
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())
  return () => open
}

/**
 * Drives a queue's clock: to move every time that is stored back is to move the database's clock on,
 * for nothing else decides (Q6). So the functions need no clock that a test, or anybody, could set.
 */
export async function passTime(open: Pick<OpenDb, 'pool'>, queue: string, ms: number): Promise<void> {
  await open.pool.query(
    `with q as (select id from millrace.queues where name = $1),
      keys as (
        update millrace.dedupe_keys set expires_at = expires_at - $2 * interval '1 ms'
          where queue_id in (select id from q)
      )
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
