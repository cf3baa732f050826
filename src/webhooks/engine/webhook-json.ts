import { sql, type SQL } from 'drizzle-orm'
import type { Db } from '../../db/port.ts'

/** A ClaimedWebhook as a JSON object, from a row of webhooks as `l`, its stream as `s` and the head of that. */
export function webhookJson(db: Db, head: SQL = sql`l.head`): SQL {
  const { webhookSecrets, deliveries } = db.tables
  return sql`json_build_object(
    'id', l.id, 'streamId', l.stream_id, 'stream', s.name, 'url', l.url, 'types', l.types,
    'ordering', l.ordering, 'format', l.format, 'maxAttempts', l.max_attempts, 'scheduleMs', l.schedule_ms,
    'jitterPercent', l.jitter_percent, 'timeoutMs', l.timeout_ms, 'rateLimit', l.rate_limit,
    'headers', coalesce(l.headers, '{}'), 'offset', l."offset", 'head', ${head}, 'saturated', l.saturated,
    'dueInMs', ceil(extract(epoch from l.due_at - now()) * 1000),
    'secrets', (
      select coalesce(json_agg(json_build_object('id', k.id, 'sealed', k.sealed)
        order by k.expires_at desc nulls first, k.created_at desc), '[]')
      from ${webhookSecrets} k
      where k.webhook_id = l.id and (k.expires_at is null or k.expires_at > now())),
    'secretsForMs', (
      select ceil(extract(epoch from min(k.expires_at) - now()) * 1000) from ${webhookSecrets} k
      where k.webhook_id = l.id and k.expires_at > now()),
    'fence', l.lease_fence,
    'units', (
      select coalesce(json_agg(distinct d.unit), '[]') from ${deliveries} d
      where d.webhook_id = l.id and d.state <> 'dead' and d.unit is not null),
    'recorded', (
      select coalesce(json_agg(d."offset"), '[]') from ${deliveries} d
      where d.webhook_id = l.id and d."offset" > l."offset"),
    'loose', (
      select count(*) from (
        select 1 from ${deliveries} d
        where d.webhook_id = l.id and d.state = 'retrying' and d.unit is null limit 1000) t))`
}
