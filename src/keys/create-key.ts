import { sql } from 'drizzle-orm'
import { textArray } from '../db/array-literal.ts'
import { isoText } from '../db/iso-text.ts'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { sha256Hex } from '../db/sha256-hex.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertLabel } from '../schema/labels.ts'
import { createKeyId, createSecret, scopes, type ApiKey, type Scope } from './api-key.ts'

/** What {@link createKey} takes. */
export interface NewKey {
  /** What it is for: 1 to 128 characters. */
  name: string
  /** At least one. */
  scopes: readonly Scope[]
  /** Only streams whose name begins like this: 1 to 128 characters. Absent or null: everything. */
  streamPrefix?: string | null
}

/** A new key, which is shown this once. */
export interface CreatedKey extends ApiKey {
  key: string
}

/**
 * Makes an API key. Only its SHA-256 is stored: with 192 random bits there is nothing to guess. One statement.
 *
 * @throws INVALID_INPUT
 */
export async function createKey(db: Executor, input: NewKey): Promise<CreatedKey> {
  const { name, streamPrefix = null } = input
  assertLabel(name, 'name', 128)
  if (streamPrefix !== null) assertLabel(streamPrefix, 'streamPrefix', 128)
  if (input.scopes.length === 0)
    throw invalidInput('scopes', `must name at least one of ${scopes.join(', ')}`)
  const granted = scopes.filter((scope) => input.scopes.includes(scope))
  const [id, key] = [createKeyId(), createSecret()]
  const [row] = await runQuery<{ at: string }>(
    db,
    sql`insert into ${db.tables.apiKeys} (id, name, hash, scopes, stream_prefix)
      values (${id}::text, ${name}::text, ${await sha256Hex(key)}::text, ${textArray(granted)}, ${streamPrefix}::text)
      returning ${isoText(sql`created_at`)} as at`,
  )
  return { id, name, scopes: granted, streamPrefix, createdAt: row?.at ?? '', key }
}
