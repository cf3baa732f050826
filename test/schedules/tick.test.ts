import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { attemptLock, tryAcquireLock } from '../../src/locks/try-acquire.ts'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { pauseSchedule } from '../../src/schedules/change-schedule.ts'
import { fireSchedule } from '../../src/schedules/fire.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { getSchedule } from '../../src/schedules/read-schedules.ts'
import { runNow } from '../../src/schedules/run-now.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'
import { dueTimes, fallBehind, intoStream, tick } from './support.ts'

const hourMs = 3_600_000

describeOnEveryDriver('a tick', (given) => {
  it('fires what was missed by policy, each message with its due time (Q5)', async () => {
    const { db } = given()
    const { nextAt } = await putSchedule(db, 'all', intoStream('all', { catchUp: 'all' }))
    await putSchedule(db, 'last', intoStream('last', { catchUp: 'last' }))
    await putSchedule(db, 'none', intoStream('none', { catchUp: 'none', everyMs: 24 * hourMs }))
    await putSchedule(db, 'flood', intoStream('flood', { catchUp: 'all' }))
    await fallBehind(db, 'all', 3)
    await fallBehind(db, 'last', 3)
    await fallBehind(db, 'flood', 100)
    // due once, but at a time that is surely over five minutes ago
    await runQuery(
      db,
      sql`update ${db.tables.schedules} set next_at = date_trunc('day', clock_timestamp(), 'UTC') - interval '1 day',
        every_ms = 365 * 86400000::bigint where name = 'none'`,
    )
    const next = nextAt!.getTime()
    expect(await tick(db)).toMatchObject({ role: 'led', fired: 3 + 1 + 64, failed: 0 })
    expect(await dueTimes(db, 'all')).toEqual([next - 3 * hourMs, next - 2 * hourMs, next - hourMs])
    expect(await dueTimes(db, 'last')).toEqual([next - hourMs])
    expect(await dueTimes(db, 'none')).toEqual([])
    const flood = await dueTimes(db, 'flood')
    expect(flood).toEqual(Array.from({ length: 64 }, (_, index) => next - (64 - index) * hourMs))
    expect(await getSchedule(db, 'all')).toMatchObject({ nextAt, lastAt: new Date(next - hourMs) })
    expect((await getSchedule(db, 'none'))!.nextAt!.getTime()).toBeGreaterThan(next)
    expect(await tick(db)).toMatchObject({ role: 'idle', fired: 0 })
  })

  it('sends to a queue as it publishes to a stream, type and key or not', async () => {
    const { db } = given()
    const target = { kind: 'queue' as const, name: 'jobs' }
    const dataText = '{"n": 1}'
    const plain = await putSchedule(db, 'queue.plain', { target, everyMs: hourMs, catchUp: 'all', dataText })
    await putSchedule(db, 'queue.full', { target, everyMs: hourMs, type: 'job', key: 'k', dataText })
    await fallBehind(db, 'queue.plain', 2)
    await fallBehind(db, 'queue.full', 1)
    expect(await tick(db)).toMatchObject({ fired: 3, failed: 0 })
    const ran = await runNow(db, 'queue.plain')
    const { messages } = await claimMessages(db, 'jobs', { limit: 10 })
    const next = plain.nextAt!.getTime()
    const seen = messages.map(({ type, key, dataText: data, headers }) => ({ type, key, data, headers }))
    const expected = (schedule: string, type: string | null, key: string | null, dueMs: number) => ({
      type,
      key,
      data: dataText,
      headers: { 'millrace-schedule': schedule, 'millrace-due-at': new Date(dueMs).toISOString() },
    })
    expect(seen).toHaveLength(4)
    expect(seen).toEqual(
      expect.arrayContaining([
        expected('queue.plain', null, null, next - 2 * hourMs),
        expected('queue.plain', null, null, next - hourMs),
        expected('queue.full', 'job', 'k', next - hourMs),
        expected('queue.plain', null, null, ran.dueAt.getTime()),
      ]),
    )
    expect(messages.map((message) => message.id)).toContain(ran.number)
    expect(messages[0]).toMatchObject({ maxAttempts: 10, leaseMs: 30_000, priority: 0 })
  })

  it('gives the lead back, so that the next tick of another need not wait', async () => {
    const { db } = given()
    await putSchedule(db, 'lead', intoStream('lead'))
    for (let turn = 1; turn <= 3; turn++) {
      await fallBehind(db, 'lead', 1)
      expect(await tick(db)).toMatchObject({ role: 'led', fired: 1 })
    }
  })

  it('does nothing while another leads, and says when to look again', async () => {
    const { db } = given()
    await putSchedule(db, 'standby', intoStream('standby'))
    await fallBehind(db, 'standby', 1)
    const other = await attemptLock(db, 'millrace.schedules', { ttlMs: 60_000 })
    expect(other.acquired).toBe(true)
    expect(await tick(db)).toEqual({ role: 'standby', fired: 0, failed: 0, nextDueInMs: 1000 })
    await runQuery(
      db,
      sql`update ${db.tables.locks} set until = clock_timestamp() where name = 'millrace.schedules'`,
    )
    expect(await tick(db)).toMatchObject({ role: 'led', fired: 1 })
    await expect(tryAcquireLock(db, 'millrace.schedules', { ttlMs: 60_000 })).rejects.toMatchObject({
      code: 'INVALID_NAME',
    })
  })

  it('of a leader that lost the lead, or is late, changes nothing (Q5)', async () => {
    const { db } = given()
    await putSchedule(db, 'late', intoStream('late'))
    await fallBehind(db, 'late', 1)
    const [row] = await runQuery<{ revision: string }>(
      db,
      sql`select revision::text from ${db.tables.schedules} where name = 'late'`,
    )
    const { nextAt } = (await getSchedule(db, 'late'))!
    const due = { fire: [nextAt!], next: new Date(nextAt!.getTime() + hourMs) }
    const firing = { name: 'late', targetKind: 'stream' as const, revision: row!.revision, due }
    const take = async () => {
      const attempt = await attemptLock(db, 'millrace.schedules', { ttlMs: 60_000 })
      if (!attempt.acquired) throw new Error('held')
      return attempt.lock
    }
    const end = () =>
      runQuery(
        db,
        sql`update ${db.tables.locks} set until = clock_timestamp() where name = 'millrace.schedules'`,
      )

    const deposed = await take()
    await end()
    const leader = await take()
    expect(await fireSchedule(db, deposed, firing)).toBeNull()
    expect(await fireSchedule(db, leader, firing)).toHaveLength(1)
    expect(await fireSchedule(db, leader, firing)).toBeNull()
    await end()
    expect(await dueTimes(db, 'late')).toEqual([nextAt!.getTime()])
  })

  it('passes over a schedule that was paused or changed in the meantime', async () => {
    const { db } = given()
    await putSchedule(db, 'changed', intoStream('changed'))
    await fallBehind(db, 'changed', 1)
    const [row] = await runQuery<{ revision: string }>(
      db,
      sql`select revision::text from ${db.tables.schedules} where name = 'changed'`,
    )
    await pauseSchedule(db, 'changed')
    const attempt = await attemptLock(db, 'millrace.schedules', { ttlMs: 60_000 })
    if (!attempt.acquired) throw new Error('held')
    const due = { fire: [new Date()], next: null }
    const firing = { name: 'changed', targetKind: 'stream' as const, revision: row!.revision, due }
    expect(await fireSchedule(db, attempt.lock, firing)).toBeNull()
    await runQuery(
      db,
      sql`update ${db.tables.locks} set until = clock_timestamp() where name = 'millrace.schedules'`,
    )
  })

  it('fires more than a page of schedules, and one that cannot fire holds up no other', async () => {
    const { db } = given()
    await runQuery(
      db,
      sql`insert into ${db.tables.schedules} (name, target_kind, target, every_ms, catch_up, type, data, next_at)
        select 'many.' || n, 'stream', 'many', 3600000, 'last', 'tick', '{}', date_trunc('hour', clock_timestamp())
        from generate_series(1, 120) n`,
    )
    await runQuery(
      db,
      sql`update ${db.tables.schedules} set every_ms = null, cron = 'nonsense', time_zone = 'UTC' where name = 'many.7'`,
    )
    let fired = 0
    let failed = 0
    // a slow machine may lose the lead on the way: then the next tick goes on
    for (let due: number | null = 0; due === 0;) {
      const done = await tick(db)
      fired += done.fired
      failed += done.failed
      due = done.nextDueInMs
    }
    expect(fired).toBe(119)
    expect(failed).toBeGreaterThanOrEqual(1)
    expect(await dueTimes(db, 'many')).toHaveLength(119)
    const broken = await getSchedule(db, 'many.7')
    expect(broken).toMatchObject({ failures: failed, lastAt: null })
    expect(broken!.lastError).toContain('nonsense')
    // it is put off, and due again soon: nothing is lost
    expect((await tick(db)).nextDueInMs).toBeLessThanOrEqual(64_000)
    await putSchedule(db, 'many.7', intoStream('many'))
    expect(await getSchedule(db, 'many.7')).toMatchObject({ failures: 0, lastError: null })
    // 120 sessions one after the other over HTTP
  }, 90_000)
})
