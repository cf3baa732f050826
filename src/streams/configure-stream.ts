import { sql } from 'drizzle-orm'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertSharedName } from '../schema/names.ts'
import type { Retention } from './stream-info.ts'

/** A second: below that, retention would be a race with readers. */
const minAgeMs = 1_000
/** A hundred years. */
const maxAgeMs = 3_155_760_000_000

/**
 * Sets what a stream forgets; what is not named stays as it is. The stream is made if there is none. Returns
 * the retention that stands now. One statement. It wakes like a publish, so that whoever removes old events
 * hears of it.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function configureStream(
  db: Db,
  stream: string,
  change: Partial<Retention>,
  options: TxOption = {},
): Promise<Retention> {
  assertSharedName('stream', stream)
  assertRetention(change)
  assertRange('retention.ageMs', change.ageMs, minAgeMs, maxAgeMs)
  assertRange('retention.count', change.count, 0, Number.MAX_SAFE_INTEGER)
  const on = executorFor(db, options)
  const { ageMs = null, count = null, keepUnread = false } = change
  const keep = (name: keyof Retention) => sql`${change[name] === undefined}::boolean`
  const [row] = await runQuery<{ retention: string }>(
    on,
    sql`with configured as (
      insert into ${on.tables.streams} as s (name, retain_age_ms, retain_count, keep_unread)
      values (${stream}::text, ${ageMs}::bigint, ${count}::bigint, ${keepUnread}::boolean)
      on conflict (name) do update set
        retain_age_ms = case when ${keep('ageMs')} then s.retain_age_ms else excluded.retain_age_ms end,
        retain_count = case when ${keep('count')} then s.retain_count else excluded.retain_count end,
        keep_unread = case when ${keep('keepUnread')} then s.keep_unread else excluded.keep_unread end
      returning s.id, s.retain_age_ms, s.retain_count, s.keep_unread
    )
    select json_build_object(
        'ageMs', c.retain_age_ms, 'count', c.retain_count, 'keepUnread', c.keep_unread)::text as retention,
      ${qualified(on, 'wake_stream')}(c.id)
    from configured c`,
  )
  return JSON.parse(row?.retention ?? '{}') as Retention
}

const known: ReadonlySet<string> = new Set<keyof Retention>(['ageMs', 'count', 'keepUnread'])

function assertRetention(change: Partial<Retention>): void {
  if (typeof change !== 'object' || change === null || Array.isArray(change)) {
    throw invalidInput('retention', 'must be an object')
  }
  for (const name of Object.keys(change)) {
    if (!known.has(name)) throw invalidInput(`retention.${name}`, 'is not a known field')
  }
  if (change.keepUnread !== undefined && typeof change.keepUnread !== 'boolean') {
    throw invalidInput('retention.keepUnread', 'must be true or false')
  }
}

function assertRange(field: string, value: number | null | undefined, min: number, max: number): void {
  if (value === null || value === undefined) return
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    throw invalidInput(field, `must be a whole number from ${min} to ${max}, or null`)
  }
}
