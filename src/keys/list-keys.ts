import { sql } from 'drizzle-orm'
import { isoText } from '../db/iso-text.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { ApiKey } from './api-key.ts'

/** A page of keys. */
export interface KeyPage {
  keys: ApiKey[]
  /** Pass it as `after` for the next page; null: this was the last. */
  next: string | null
}

/** API keys by id, a page at a time; the keys themselves are not stored. One statement. */
export async function listKeys(db: Executor, range: { after?: string; limit: number }): Promise<KeyPage> {
  const rows = await runQuery<{ key: string }>(
    db,
    sql`select json_build_object('id', k.id, 'name', k.name, 'scopes', to_json(k.scopes),
        'streamPrefix', k.stream_prefix, 'createdAt', ${isoText(sql`k.created_at`)})::text as key
      from ${db.tables.apiKeys} k where k.id collate "C" > ${range.after ?? ''}::text
      order by k.id collate "C" limit ${range.limit + 1}::integer`,
  )
  const keys = rows.slice(0, range.limit).map(({ key }) => JSON.parse(key) as ApiKey)
  return { keys, next: rows.length > range.limit ? (keys.at(-1)?.id ?? null) : null }
}
