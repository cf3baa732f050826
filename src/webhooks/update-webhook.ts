import { sql, type SQL } from 'drizzle-orm'
import { bigintArray, textArray } from '../db/array-literal.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery } from '../db/run.ts'
import { noWebhook } from './get-webhook.ts'
import type { TargetPolicy } from './target-url.ts'
import { isWebhookId } from './webhook-id.ts'
import { parseWebhookChange, type WebhookChange } from './webhook-input.ts'
import { headsCte, toWebhookView, viewSelect, type WebhookView } from './webhook-view.ts'

/**
 * Changes the settings that are named and leaves the rest. A worker that is delivering at this moment
 * loses its lease, so that whoever comes next uses the new ones; what is on its way may still arrive. One
 * statement.
 *
 * @throws NOT_FOUND, INVALID_INPUT, TARGET_FORBIDDEN
 */
export async function updateWebhook(
  db: Db,
  id: string,
  change: WebhookChange,
  rules: { policy: TargetPolicy },
  options: TxOption = {},
): Promise<WebhookView> {
  if (!isWebhookId(id)) throw noWebhook()
  const assignments = assignmentsOf(parseWebhookChange(change, rules.policy))
  const on = executorFor(db, options)
  const { webhooks, streams } = on.tables
  const [row] = await runQuery<{ view: string }>(
    on,
    sql`with updated as (
        update ${webhooks} set ${sql.join([...assignments, ...endLease, sql`updated_at = clock_timestamp()`], sql`, `)}
        where id = ${id}::text returning *
      ), page as (
        select u.*, s.name as stream_name from updated u join ${streams} s on s.id = u.stream_id
      ), ${headsCte(on)}
      select v.view, ${qualified(on, 'wake_webhook')}(u.id), ${qualified(on, 'wake_stream')}(u.stream_id)
      from (${viewSelect(on)}) v cross join updated u`,
  )
  if (row === undefined) throw noWebhook()
  return toWebhookView(row)
}

const endLease = [sql`lease_token = null`, sql`lease_until = null`]

function assignmentsOf(change: WebhookChange): SQL[] {
  const { url, types, maxAttempts, scheduleMs, jitterPercent, timeoutMs, rateLimit, headers } = change
  const values: Record<string, SQL | undefined> = {
    url: given(url, (value) => sql`${value}::text`),
    types: given(types, (value) => textArray(value)),
    max_attempts: given(maxAttempts, (value) => sql`${value}::integer`),
    schedule_ms: given(scheduleMs, (value) => (value ? bigintArray(value) : sql`null::bigint[]`)),
    jitter_percent: given(jitterPercent, (value) => sql`${value}::integer`),
    timeout_ms: given(timeoutMs, (value) => sql`${value}::integer`),
    rate_limit: given(rateLimit, (value) => sql`${value}::integer`),
    headers: given(headers, (value) => sql`${value ? JSON.stringify(value) : null}::text::json`),
  }
  return Object.entries(values).flatMap(([column, value]) =>
    value === undefined ? [] : [sql`${sql.identifier(column)} = ${value}`],
  )
}

function given<T>(value: T | undefined, toSql: (value: T) => SQL): SQL | undefined {
  return value === undefined ? undefined : toSql(value)
}
