import { sql } from 'drizzle-orm'
import type { Executor } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { MillraceError } from '../errors/millrace-error.ts'

/**
 * Puts a schedule that could not fire off for 1 s, doubling to 60 s, so that it delays no other. Its
 * boundaries stay due. Nothing happens if it was changed meanwhile.
 */
export async function noteFailure(
  on: Executor,
  schedule: { name: string; revision: string },
  failure: MillraceError,
): Promise<void> {
  await runQuery(
    on,
    sql`update ${on.tables.schedules} s
      set failures = s.failures + 1,
          last_error = left(${failure.message}, 1000),
          retry_at = clock_timestamp() + least(60, power(2, least(s.failures, 6))) * interval '1 second'
      where s.name = ${schedule.name} and s.revision = ${schedule.revision}::uuid`,
  )
}
