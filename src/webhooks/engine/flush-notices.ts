import { sql, type SQL } from 'drizzle-orm'
import { isoText } from '../../db/iso-text.ts'
import type { Db } from '../../db/port.ts'
import { operationalStream, operationalTypes } from '../operational-events.ts'

/**
 * What a flush (see flush-outcomes.ts, whose CTEs this reads) has to tell: each transition that it makes, so
 * that none is told twice. A webhook that listens to the operational stream itself is spared what its
 * deliveries bring about, since each such event would be one more delivery that may fail; that it was
 * disabled is told, once.
 */
export function flushNotices(db: Db): SQL {
  const { streams, deliveries, events } = db.tables
  return sql`
      select r.id, ${operationalTypes.exhausted}::text as type, r."offset" as place,
        json_build_object('webhookId', r.id, 'stream', s.name, 'offset', r."offset", 'type', e.type,
          'key', e.key, 'attempts', r.attempts, 'status', r.status, 'error', r.error) as data
      from changed r join held h on h.id = r.id
      join ${streams} s on s.id = h.stream_id and s.name <> ${operationalStream}::text
      left join ${events} e on e.stream_id = h.stream_id and e."offset" = r."offset"
      where r.state = 'dead' and not exists (
        select 1 from ${deliveries} d
        where d.webhook_id = r.id and d."offset" = r."offset" and d.state = 'dead')
      union all
      select h.id, ${operationalTypes.recovered}::text, ${afterAll}::bigint,
        json_build_object('webhookId', h.id, 'stream', s.name, 'failingSince', ${isoText(sql`h.failing_since`)})
      from held h join lane l on l.id = h.id
      join ${streams} s on s.id = h.stream_id and s.name <> ${operationalStream}::text
      where h.failing_since is not null and l.succeeded and not l.failed and l.disable is null
      union all
      select h.id, ${operationalTypes.disabled}::text, ${afterAll}::bigint,
        json_build_object('webhookId', h.id, 'stream', s.name, 'reason', f.state_reason)
      from held h join flushed f on f.id = h.id join ${streams} s on s.id = h.stream_id
      where h.state = 'active' and f.state = 'disabled'`
}

/** Beyond every offset. */
const afterAll = '9223372036854775807'
