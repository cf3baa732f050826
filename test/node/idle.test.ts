import { afterEach, describe, expect, it } from 'vitest'
import { configureStream } from '../../src/streams/configure-stream.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { startIdleProcess, type IdleProcess } from './support/idle-process.ts'

const minute = 60_000

let running: IdleProcess | undefined
afterEach(async () => {
  await running?.close()
  running = undefined
})

async function start(env?: Record<string, string>): Promise<IdleProcess> {
  running = await startIdleProcess(env)
  return running
}

describe('a forwarder with nothing to do', () => {
  it('makes no statement and no connection in ten minutes where wakes arrive, and is there at once after', async () => {
    const { world, door, delivery, pass, until, quiet } = await start()
    await world.webhook()
    await until(() => delivery.forwarder.mode === 'listening')
    await world.publish(['a'])
    await until(() => world.receiver.requests.length === 1)
    // the last flush, the lease given back, housekeeping after a minute
    await pass(2 * minute)
    await quiet()
    await pass(2 * minute)
    await quiet()
    const [asked, came] = [door.statements.length, door.accepted()]
    await pass(10 * minute)
    await quiet()
    expect(door.statements.slice(asked)).toEqual([])
    expect(door.accepted()).toBe(came)
    await world.publish(['b'])
    await until(() => world.receiver.requests.length === 2)
  }, 180_000)

  it('comes for a schedule, and for nothing else, at its time', async () => {
    const { world, door, delivery, clock, pass, until, quiet } = await start()
    await until(() => delivery.forwarder.mode === 'listening')
    // long, since the boundaries stand fast: one must not be near by chance
    const everyMs = 30 * 86_400_000
    await putSchedule(world.db, 'monthly', {
      target: { kind: 'queue', name: 'ticks' },
      everyMs,
      catchUp: 'last',
      dataText: '1',
    })
    await pass(2 * minute)
    await quiet()
    const asked = door.statements.length
    await pass(10 * minute)
    await quiet()
    expect(door.statements.slice(asked)).toEqual([])
    // it wakes by itself: by a timer, which reaches a day at most
    expect(clock.nextIn()).toBeLessThanOrEqual(86_400_000)
  }, 120_000)

  it('comes when an event becomes old enough to be removed', async () => {
    const { world, door, delivery, clock, pass, until, quiet } = await start()
    await world.publish(['a'])
    await configureStream(world.db, 'orders', { ageMs: 86_400_000 })
    await until(() => delivery.forwarder.mode === 'listening')
    await pass(2 * minute)
    await quiet()
    await pass(2 * minute)
    await quiet()
    const asked = door.statements.length
    await pass(10 * minute)
    expect(door.statements.slice(asked)).toEqual([])
    expect(clock.nextIn()).toBeLessThanOrEqual(86_400_000)
    expect(clock.nextIn()).toBeGreaterThan(80_000_000)
  }, 120_000)

  it('N4: looks less and less often where no wakes arrive, up to a minute, and at once again after work', async () => {
    const { world, door, pass, until, quiet } = await start({ MILLRACE_LISTEN: '0' })
    await world.webhook()
    await until(() => claims() >= 1)
    await pass(10 * minute)
    await quiet()
    const asked = claims()
    await pass(10 * minute)
    await quiet()
    // one a minute, less what the clock ran on while one was under way
    expect(claims() - asked).toBeGreaterThanOrEqual(6)
    expect(claims() - asked).toBeLessThanOrEqual(11)

    await world.publish(['a'])
    await until(() => world.receiver.requests.length === 1, { stepMs: 500, atMostMs: 61_000 })
    await quiet()
    await world.publish(['b'])
    expect(await until(() => world.receiver.requests.length === 2)).toBeLessThanOrEqual(3_000)

    function claims(): number {
      return door.statements.filter((text) => text.includes('heads as materialized')).length
    }
  }, 180_000)

  it('N4: looks as often as it is told', async () => {
    const settings = { MILLRACE_LISTEN: '0', MILLRACE_POLL_MIN_MS: '5000', MILLRACE_POLL_MAX_MS: '10000' }
    const { door, pass, quiet } = await start(settings)
    await quiet()
    await pass(minute)
    await quiet()
    const asked = ticks()
    await pass(minute)
    await quiet()
    expect(ticks() - asked).toBeGreaterThanOrEqual(5)
    expect(ticks() - asked).toBeLessThanOrEqual(7)

    function ticks(): number {
      return door.statements.filter((text) => text.includes('retry_at')).length
    }
  }, 120_000)
})
