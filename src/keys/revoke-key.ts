import { sql } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'

/** Deletes an API key; returns whether there was one. */
export async function revokeKey(db: Executor, id: string): Promise<boolean> {
  const rows = await runQuery(
    db,
    sql`delete from ${db.tables.apiKeys} where id = ${id}::text returning 1 as gone`,
  )
  return rows.length > 0
}
