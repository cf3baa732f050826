import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { deleteSchedule, pauseSchedule, resumeSchedule } from '../../src/schedules/change-schedule.ts'
import { nextDueAt, nextDueStatement } from '../../src/schedules/next-due.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { getSchedule, listSchedules } from '../../src/schedules/read-schedules.ts'
import { runNow } from '../../src/schedules/run-now.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'
import { dueTimes, fallBehind, intoStream, tick } from './support.ts'

const hourMs = 3_600_000

describeOnEveryDriver('a schedule', (given) => {
  it('reads as it was put, its data byte for byte', async () => {
    const { db } = given()
    const dataText = '{"b":1, "a":1.0,"a":"\\u0000é"}'
    const put = await putSchedule(db, 'reads', {
      target: { kind: 'stream', name: 'reads.out' },
      cron: '0 9 * * MON-FRI',
      timeZone: 'Europe/Berlin',
      catchUp: 'all',
      type: 'report.due',
      key: 'reports',
      dataText: ` ${dataText}\n`,
    })
    expect(put).toEqual({
      name: 'reads',
      target: { kind: 'stream', name: 'reads.out' },
      cron: '0 9 * * MON-FRI',
      timeZone: 'Europe/Berlin',
      everyMs: null,
      catchUp: 'all',
      type: 'report.due',
      key: 'reports',
      dataText,
      paused: false,
      nextAt: expect.any(Date),
      lastAt: null,
      failures: 0,
      lastError: null,
      createdAt: expect.any(Date),
      updatedAt: expect.any(Date),
    })
    expect(await getSchedule(db, 'reads')).toEqual(put)
    expect(await getSchedule(db, 'nobody')).toBeNull()
    await runNow(db, 'reads')
    const { events } = await readEvents(db, 'reads.out')
    expect(events).toMatchObject([{ type: 'report.due', key: 'reports', dataText }])
  })

  it('keeps its place when it is put again with the same timing, and starts anew with another', async () => {
    const { db } = given()
    const first = await putSchedule(db, 'again', intoStream('again'))
    await fallBehind(db, 'again', 3)
    const same = await putSchedule(db, 'again', intoStream('again', { type: 'other' }))
    expect(same.type).toBe('other')
    expect(same.nextAt!.getTime()).toBe(first.nextAt!.getTime() - 3 * hourMs)
    const other = await putSchedule(db, 'again', intoStream('again', { everyMs: 2 * hourMs }))
    expect(other.nextAt!.getTime()).toBeGreaterThanOrEqual(first.nextAt!.getTime())
    expect(other.createdAt).toEqual(first.createdAt)
  })

  it('is listed in the order of names, a page at a time, and gone when deleted', async () => {
    const { db } = given()
    for (const name of ['list.c', 'list.a', 'list.b']) await putSchedule(db, name, intoStream('list'))
    const first = await listSchedules(db, { after: 'list.', limit: 2 })
    expect(first.schedules.map((schedule) => schedule.name)).toEqual(['list.a', 'list.b'])
    expect(first.next).toBe('list.b')
    const rest = await listSchedules(db, { after: 'list.b', limit: 1 })
    expect(rest.schedules[0]!.name).toBe('list.c')
    expect(await deleteSchedule(db, 'list.a')).toBe(true)
    expect(await deleteSchedule(db, 'list.a')).toBe(false)
    expect(await getSchedule(db, 'list.a')).toBeNull()
  })

  it('does not fire while paused, and resumes with the first boundary after now', async () => {
    const { db } = given()
    const { nextAt } = await putSchedule(db, 'pause', intoStream('pause', { catchUp: 'all' }))
    await fallBehind(db, 'pause', 5)
    expect((await pauseSchedule(db, 'pause')).paused).toBe(true)
    await tick(db)
    expect(await dueTimes(db, 'pause')).toEqual([])
    // a put that says nothing about it leaves it paused
    expect((await putSchedule(db, 'pause', intoStream('pause', { catchUp: 'all' }))).paused).toBe(true)
    const resumed = await resumeSchedule(db, 'pause')
    expect(resumed.paused).toBe(false)
    expect(resumed.nextAt!.getTime()).toBeGreaterThanOrEqual(nextAt!.getTime())
    await tick(db)
    expect(await dueTimes(db, 'pause')).toEqual([])
    expect(await resumeSchedule(db, 'pause')).toEqual(resumed)
  })

  it('resumes by a put that says so, without what fell into the pause', async () => {
    const { db } = given()
    const { nextAt } = await putSchedule(db, 'unpause', intoStream('unpause', { paused: true }))
    await fallBehind(db, 'unpause', 5)
    const put = await putSchedule(db, 'unpause', intoStream('unpause', { paused: false }))
    expect(put.paused).toBe(false)
    expect(put.nextAt!.getTime()).toBeGreaterThanOrEqual(nextAt!.getTime())
  })

  it('runs now, also while paused, and its boundaries stay', async () => {
    const { db } = given()
    const { nextAt } = await putSchedule(db, 'now', intoStream('now', { paused: true }))
    const before = await databaseTime()
    const ran = await runNow(db, 'now')
    const { events } = await readEvents(db, 'now')
    expect(events).toMatchObject([{ offset: ran.number, headers: { 'millrace-schedule': 'now' } }])
    expect(events[0]!.headers!['millrace-due-at']).toBe(ran.dueAt.toISOString())
    expect(ran.dueAt.getTime()).toBeGreaterThanOrEqual(before - 1)
    expect(ran.dueAt.getTime()).toBeLessThanOrEqual((await databaseTime()) + 1)
    expect(await getSchedule(db, 'now')).toMatchObject({ nextAt, lastAt: null, paused: true })

    async function databaseTime(): Promise<number> {
      const [row] = await runQuery<{ ms: string }>(
        db,
        sql`select (extract(epoch from clock_timestamp()) * 1000)::bigint::text as ms`,
      )
      return Number(row!.ms)
    }
  })

  it('that is not there cannot be paused, resumed or run', async () => {
    const { db } = given()
    for (const act of [pauseSchedule, resumeSchedule, runNow]) {
      await expect(act(db, 'absent')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  it('is refused with the field at fault', async () => {
    const { db } = given()
    const refusals: [object, string, string][] = [
      [{ cron: 'x' }, 'INVALID_INPUT', 'cron'],
      [{ cron: '* * * * *', timeZone: 'Nowhere' }, 'INVALID_INPUT', 'timeZone'],
      [{ everyMs: 1 }, 'INVALID_INPUT', 'everyMs'],
      [{ catchUp: 'some' }, 'INVALID_INPUT', 'catchUp'],
      [{ type: '' }, 'INVALID_INPUT', 'type'],
      [{ dataText: '{' }, 'INVALID_JSON', 'data'],
      [{ target: { kind: 'topic', name: 'x' } }, 'INVALID_INPUT', 'target'],
      [{ type: undefined }, 'INVALID_INPUT', 'type'],
      [{ target: { kind: 'queue', name: 'q' }, key: '' }, 'INVALID_INPUT', 'key'],
      [{ target: { kind: 'stream', name: 'a b' } }, 'INVALID_NAME', 'stream'],
    ]
    for (const [change, code, field] of refusals) {
      const put = putSchedule(db, 'refused', { ...intoStream('x', change), ...change })
      await expect(put, field).rejects.toMatchObject({ code, details: { field } })
    }
    await expect(putSchedule(db, 'a b', intoStream('x'))).rejects.toMatchObject({ code: 'INVALID_NAME' })
    expect(await getSchedule(db, 'refused')).toBeNull()
  })
})

describeOnEveryDriver(
  'schedules in a transaction',
  (given) => {
    it('are put, and run, if and only if it commits (Q3)', async () => {
      const { db } = given()
      await putSchedule(db, 'tx.runs', intoStream('tx'))
      const write = async (fail: boolean): Promise<void> =>
        db.transaction(async ({ drizzle: tx }) => {
          await putSchedule(db, 'tx.put', intoStream('tx'), { tx })
          await runNow(db, 'tx.runs', { tx })
          await runNow(db, 'tx.put', { tx })
          if (fail) throw new Error('roll back')
        })
      await expect(write(true)).rejects.toThrow('roll back')
      expect(await getSchedule(db, 'tx.put')).toBeNull()
      expect(await dueTimes(db, 'tx')).toEqual([])
      await write(false)
      expect(await getSchedule(db, 'tx.put')).not.toBeNull()
      expect(await dueTimes(db, 'tx')).toHaveLength(2)
    })
  },
  { needs: ['interactiveTx'] },
)

describeOnEveryDriver('the next due time', (given) => {
  it('is that of the first schedule that is not paused, by the database (Q6)', async () => {
    const { db } = given()
    expect(await nextDueAt(db)).toBeNull()
    expect(await tick(db)).toEqual({ role: 'idle', fired: 0, failed: 0, nextDueInMs: null })
    await putSchedule(db, 'paused', intoStream('due', { everyMs: 1000, paused: true }))
    const later = await putSchedule(db, 'later', intoStream('due', { cron: '0 0 1 1 *' }))
    const sooner = await putSchedule(db, 'sooner', intoStream('due', { cron: '0 0 1 * *' }))
    const at = new Date(Math.min(later.nextAt!.getTime(), sooner.nextAt!.getTime()))
    const due = await nextDueAt(db)
    expect(due!.at).toEqual(at)
    expect((await tick(db)).nextDueInMs).toBeGreaterThan(due!.inMs - 10_000)
    await pauseSchedule(db, 'later')
    await pauseSchedule(db, 'sooner')
    expect(await nextDueAt(db)).toBeNull()
  })

  it('is the first entry of the index schedules_due', async () => {
    const { db } = given()
    // over HTTP each statement is its own session: settings come with it
    const plan = await runQuery<object>(db, sql`explain (costs off) ${nextDueStatement(db)}`)
    expect(JSON.stringify(plan)).toContain('schedules_due')
    expect(JSON.stringify(plan)).not.toContain('Sort')
  })
})
