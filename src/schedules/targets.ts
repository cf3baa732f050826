import { sql, type SQL } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { qualified } from '../db/run.ts'
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
  stream: (on, source, headers) => sql`
    select a.o_offsets as numbers, ${qualified(on, 'wake_stream')}(a.o_stream_id)
    from ${source} s, lateral ${qualified(on, 'append')}(s.target, ${repeated(sql`s.type`, headers)},
      ${repeated(sql`s.key`, headers)}, ${repeated(sql`s.data`, headers)}, ${headers}, null, null) a`,
  queue: () => {
    throw new Error('queues are not there yet')
  },
}

/** An array of one value as often as there are messages. */
function repeated(value: SQL, headers: SQL): SQL {
  return sql`array_fill(${value}, array[cardinality(${headers})])`
}
