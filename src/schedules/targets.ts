import { sql, type SQL } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { qualified } from '../db/run.ts'
import { validateMessage } from '../queues/validate-message.ts'
import type { ScheduleTarget } from './schedule.ts'

/** What carries a message's due time, as ISO 8601 in UTC. */
export const dueAtHeader = 'millrace-due-at'
/** What carries the name of the schedule. */
export const scheduleHeader = 'millrace-schedule'

/**
 * The SQL that sends a schedule's messages, one query per kind of target. It reads the rows of `source` (a
 * CTE with target, type, key and data), sends one message per element of `headers` for each of them, wakes
 * the readers at commit, and returns `numbers`: the offsets or message ids. Part of the one statement that
 * also moves the schedule on, so that both happen or neither does.
 *
 * @param source the name of the CTE
 * @param headers a `text[]` of JSON objects
 */
export function sendStatement(on: Executor, kind: ScheduleTarget['kind'], source: SQL, headers: SQL): SQL {
  return senders[kind](on, source, headers)
}

const senders: Record<ScheduleTarget['kind'], (on: Executor, source: SQL, headers: SQL) => SQL> = {
  stream: appendTo,
  queue: sendTo,
}

function appendTo(on: Executor, source: SQL, headers: SQL): SQL {
  const each = (value: SQL): SQL => repeated(value, headers)
  return sql`
    select a.o_offsets as numbers, ${qualified(on, 'wake_stream')}(a.o_stream_id)
    from ${source} s, lateral ${qualified(on, 'append')}(s.target, ${each(sql`s.type`)}, ${each(sql`s.key`)},
      ${each(sql`s.data`)}, ${headers}, null, null) a`
}

/** With the options that every message has by default. */
function sendTo(on: Executor, source: SQL, headers: SQL): SQL {
  const each = (value: SQL): SQL => repeated(value, headers)
  const { priority, maxAttempts, leaseMs, backoff } = validateMessage({ dataText: 'null' })
  return sql`
    select m.o_ids as numbers, ${qualified(on, 'wake_queue')}(m.o_queue_id)
    from ${source} s, lateral ${qualified(on, 'send_messages')}(s.target, ${each(sql`s.data`)}, ${each(sql`s.type`)},
      ${each(sql`s.key`)}, ${headers}, ${each(sql`${priority}::bigint`)}, null, null,
      ${each(sql`${maxAttempts}::bigint`)}, ${each(sql`${leaseMs}::bigint`)},
      ${each(sql`${backoff.baseMs}::bigint`)}, ${each(sql`${backoff.maxMs}::bigint`)},
      ${each(sql`${String(backoff.factor)}::text::double precision`)}, null, null) m`
}

/** An array of one value as often as there are messages. */
function repeated(value: SQL, headers: SQL): SQL {
  return sql`array_fill(${value}, array[cardinality(${headers})])`
}
