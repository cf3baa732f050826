import { sql } from 'drizzle-orm'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import type { NewSchedule } from '../../src/schedules/schedule.ts'
import { tickSchedules, type Tick } from '../../src/schedules/tick-schedules.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { silentLog, systemClock } from '../../src/system-ports.ts'

/** A schedule into the stream of the given name, hourly unless told otherwise. */
export function intoStream(name: string, more: Partial<NewSchedule> = {}): NewSchedule {
  const timing = more.cron === undefined && more.everyMs === undefined ? { everyMs: 3_600_000 } : {}
  return { target: { kind: 'stream', name }, type: 'tick', dataText: '{}', ...timing, ...more }
}

export function tick(db: Db): Promise<Tick> {
  return tickSchedules(db, { clock: systemClock, log: silentLog })
}

/** What downtime does: the first boundary that has not fired moves so many multiples of `everyMs` back. */
export async function fallBehind(db: Db, name: string, boundaries: number): Promise<void> {
  await runQuery(
    db,
    sql`update ${db.tables.schedules}
      set next_at = next_at - ${boundaries}::integer * every_ms * interval '1 millisecond' where name = ${name}`,
  )
}

/** The due times of a stream's messages, in milliseconds. */
export async function dueTimes(db: Db, stream: string): Promise<number[]> {
  const due: number[] = []
  for (let after = 0; ;) {
    const page = await readEvents(db, stream, { after, limit: 1000 })
    due.push(...page.events.map((event) => Date.parse(event.headers!['millrace-due-at']!)))
    if (!page.more) return due
    after = page.next
  }
}
