import { sql } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { Grant } from './api-key.ts'

/** What the key of a hash (SHA-256, in hex) lets its bearer do; null: there is none. By the unique index. */
export async function findGrant(db: Executor, hash: string): Promise<Grant | null> {
  const [row] = await runQuery<{ found: string }>(
    db,
    sql`select json_build_object('scopes', to_json(k.scopes), 'streamPrefix', k.stream_prefix)::text as found
      from ${db.tables.apiKeys} k where k.hash = ${hash}::text`,
  )
  return row === undefined ? null : (JSON.parse(row.found) as Grant)
}
