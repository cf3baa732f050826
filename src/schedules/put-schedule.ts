import { sql } from 'drizzle-orm'
import { assertNoBatch } from '../db/batch.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { translated } from '../db/run.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { validateMessage } from '../queues/validate-message.ts'
import { assertSharedName } from '../schema/names.ts'
import { validateEvent } from '../streams/validate-event.ts'
import { databaseNow } from './database-now.ts'
import { scheduleColumns, toSchedule, wakeTimers } from './rows.ts'
import type { NewSchedule, Schedule, ScheduleTarget } from './schedule.ts'
import { nextBoundary, validateTiming } from './timing.ts'

/**
 * Creates a schedule or changes one. The first boundary is the first after now; it keeps its place, and
 * what was missed is still caught up, when a put leaves `cron`, `timeZone` and `everyMs` as they were:
 * so an application may put its schedules at every start. Whoever sets `paused` to false by it resumes
 * it as `resumeSchedule` does.
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP; `details.field` names the field
 */
export async function putSchedule(
  db: Db,
  name: string,
  schedule: NewSchedule,
  options: TxOption = {},
): Promise<Schedule> {
  assertSharedName('schedule', name)
  const on = executorFor(db, options)
  assertNoBatch(on, 'putting a schedule')
  const now = await databaseNow(on)
  const columns = { name, ...validate(schedule, now) }
  const { schedules } = on.tables
  const [row] = await translated(
    on.drizzle
      .insert(schedules)
      .values(columns)
      .onConflictDoUpdate({
        target: schedules.name,
        set: {
          ...columns,
          paused: schedule.paused ?? sql`${schedules.paused}`,
          nextAt: sql`case when ${keepsItsPlace(on, schedule.paused)} then ${schedules.nextAt} else excluded.next_at end`,
          revision: sql`gen_random_uuid()`,
          failures: 0,
          lastError: null,
          retryAt: null,
          updatedAt: sql`clock_timestamp()`,
        },
      })
      .returning({ ...scheduleColumns(on), woken: wakeTimers(on) }),
  )
  if (row === undefined) throw new Error('the upsert returned no row')
  const { woken: _, ...stored } = row
  return toSchedule(stored)
}

function keepsItsPlace(on: Executor, paused: boolean | undefined) {
  const { schedules: s } = on.tables
  return sql`(${s.cron} is not distinct from excluded.cron
    and ${s.timeZone} is not distinct from excluded.time_zone
    and ${s.everyMs} is not distinct from excluded.every_ms
    and not (${s.paused} and ${paused === false}::boolean))`
}

function validate(schedule: NewSchedule, now: Date) {
  const timing = validateTiming(schedule, now)
  const target = assertTarget(schedule.target)
  const message = validateContent(target.kind, schedule)
  return {
    ...timing,
    targetKind: target.kind,
    target: target.name,
    catchUp: assertCatchUp(schedule.catchUp ?? 'last'),
    type: message.type,
    key: message.key ?? null,
    data: message.dataText,
    paused: schedule.paused ?? false,
    nextAt: nextBoundary(timing, now),
  }
}

/** By the rules of the target, so that what was put can also be sent. */
function validateContent(kind: ScheduleTarget['kind'], { type, key, dataText }: NewSchedule) {
  // The types say so, but over HTTP a type may be anything: the rules name what is wrong with it.
  if (kind === 'stream') return validateEvent({ type: type as string, key, dataText })
  return validateMessage({ type, key, dataText })
}

function assertTarget(target: ScheduleTarget): ScheduleTarget {
  if (target?.kind !== 'stream' && target?.kind !== 'queue') {
    throw invalidInput('target', 'must be a stream or a queue')
  }
  assertSharedName(target.kind, target.name)
  return target
}

function assertCatchUp<T extends string>(catchUp: T): T {
  if (!['all', 'last', 'none'].includes(catchUp)) throw invalidInput('catchUp', 'must be all, last or none')
  return catchUp
}
