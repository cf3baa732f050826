import { describe, expect, it, type TestContext } from 'vitest'
import { readiness } from '../../src/node/readiness.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { startIdleProcess, type IdleProcess } from './support/idle-process.ts'

const minute = 60_000
const settings = { MILLRACE_SLEEP: '1' }
const closingMs = 60_000

/** A forwarder that has come up, delivered an event, and let everything go since. */
async function asleep(
  { onTestFinished }: TestContext,
  env: Record<string, string> = {},
): Promise<IdleProcess> {
  const running = await startIdleProcess({ ...settings, ...env })
  onTestFinished(() => running.close(), closingMs)
  const { world, clock, delivery, until, pass } = running
  await world.webhook()
  await until(() => delivery.forwarder.mode === (env.MILLRACE_LISTEN === '0' ? 'polling' : 'listening'))
  await world.publish(['a'])
  await until(() => world.receiver.requests.length === 1)
  await pass(10 * minute)
  expect(delivery.forwarder.mode).toBe('sleeping')
  // the session has ended, and the nap has begun
  await until(() => clock.pending() > 0, { stepMs: 0 })
  return running
}

/** Word of an event that no NOTIFY brings: the one door of this database is another. */
async function publishElsewhere({ world }: IdleProcess, key: string): Promise<void> {
  await world.publish([key])
}

// At once, since each has a database, a door and a clock of its own, and waits for silence most of the time.
describe.concurrent('a forwarder that lets its database sleep', () => {
  it('holds no connection and makes no statement until somebody rings, and then delivers what is there', async (test) => {
    const process = await asleep(test)
    const { world, door, delivery, pass, until, quiet } = process
    // the pool closes what is idle after ten seconds of its own
    await expect.poll(() => door.open(), { timeout: 20_000 }).toBe(0)
    const [asked, came] = [door.statements.length, door.accepted()]
    await publishElsewhere(process, 'b')
    await pass(40 * minute)
    await quiet()
    expect([door.statements.slice(asked), door.accepted()]).toEqual([[], came])
    expect(world.receiver.requests).toHaveLength(1)

    delivery.forwarder.ring('s1')
    expect(await until(() => world.receiver.requests.length === 2)).toBeLessThanOrEqual(2_000)
    expect(delivery.forwarder.mode).toBe('listening')
    // awake, it hears what is published
    await publishElsewhere(process, 'c')
    await until(() => world.receiver.requests.length === 3)
    await pass(10 * minute)
    expect(delivery.forwarder.mode).toBe('sleeping')
  }, 180_000)

  it('looks after its longest sleep, though nobody rang', async (test) => {
    const process = await asleep(test)
    const { world, door, delivery, clock, pass, until } = process
    const came = door.accepted()
    await publishElsewhere(process, 'b')
    const inMs = clock.nextIn()!
    expect(inMs).toBeLessThanOrEqual(60 * minute)
    await pass(inMs - 1)
    expect([door.accepted(), delivery.forwarder.mode]).toEqual([came, 'sleeping'])
    await pass(1)
    await until(() => world.receiver.requests.length === 2)
  }, 180_000)

  it('comes for a retry at its time', async (test) => {
    const process = await asleep(test)
    const { world, door, delivery, pass, until } = process
    await world.webhook({ path: '/hooks', scheduleMs: [0, 20 * minute] })
    world.receiver.answerNext({ status: 500 })
    delivery.forwarder.ring('all')
    await until(() => world.receiver.requests.length === 2)
    await pass(10 * minute)
    expect(delivery.forwarder.mode).toBe('sleeping')
    const came = door.accepted()
    await pass(5 * minute)
    expect([door.accepted(), delivery.forwarder.mode]).toEqual([came, 'sleeping'])
    // the database's clock decides, and has hardly moved
    await world.sql(`update millrace.deliveries set due_at = now() where state = 'retrying'`)
    await world.sql('update millrace.webhooks set due_at = now() where due_at is not null')
    await pass(6 * minute)
    await until(() => world.receiver.requests.length === 3)
  }, 180_000)

  it('leaves a database alone that cuts it off and refuses it, and delivers 2 s after it is back', async (test) => {
    const process = await asleep(test)
    const { world, door, delivery, pass, until, quiet } = process
    delivery.forwarder.ring('all')
    await until(() => delivery.forwarder.mode === 'listening')
    await quiet()

    door.suspend()
    await until(() => delivery.forwarder.mode === 'sleeping')
    const came = door.accepted()
    await publishElsewhere(process, 'b')
    await pass(40 * minute)
    expect(door.accepted()).toBe(came)

    delivery.forwarder.ring('s1')
    await until(() => door.accepted() >= came + 5)
    expect(delivery.forwarder.mode).toBe('sleeping')
    expect(await ready(process)).toMatchObject({ ready: false, database: 'DATABASE_UNAVAILABLE' })
    door.resume()
    expect(await until(() => world.receiver.requests.length === 2)).toBeLessThanOrEqual(2_000)
  }, 180_000)

  it('asks a database that stays away less and less often, and comes back to it by itself', async (test) => {
    const { world, door, delivery, pass, until } = await asleep(test)
    door.suspend()
    await world.publish(['b'])
    delivery.forwarder.ring('all')
    await pass(2 * minute)
    const came = door.accepted()
    // what is left of the minute after the ring, then ten seconds of attempts after one, two, four … minutes
    await pass(60 * minute)
    expect(door.accepted() - came).toBeLessThan(120 + 6 * 30)
    expect(door.accepted()).toBeGreaterThan(came)
    expect(delivery.forwarder.mode).toBe('sleeping')
    door.resume()
    await until(() => world.receiver.requests.length === 2, { stepMs: 1_000, atMostMs: 70 * minute })
  }, 240_000)

  it('sleeps its longest when nothing is due, however soon it goes back to sleep', async (test) => {
    const process = await asleep(test, { MILLRACE_SLEEP_AFTER_MS: '3000' })
    const { world, door, delivery, clock, pass, until } = process
    expect(delivery.forwarder.agenda.nextDueAt).toBe(Infinity)
    const [asked, came] = [door.statements.length, door.accepted()]
    await pass(40 * minute)
    expect([door.statements.slice(asked), door.accepted()]).toEqual([[], came])
    // the look at the end of its longest sleep leads to no further one
    await pass(clock.nextIn()!)
    await until(() => door.accepted() > came)
    await pass(5 * minute)
    expect([delivery.forwarder.mode, delivery.forwarder.agenda.nextDueAt]).toEqual(['sleeping', Infinity])

    // who rings is still answered
    await publishElsewhere(process, 'b')
    delivery.forwarder.ring('all')
    await until(() => world.receiver.requests.length === 2)
  }, 180_000)

  it('says how it is without asking the database', async (test) => {
    const process = await asleep(test)
    const { door, delivery } = process
    const asked = door.statements.length
    expect(await ready(process)).toEqual({
      ready: true,
      database: 'asleep',
      migrations: 'unknown',
      mode: 'sleeping',
    })
    const metrics = await delivery.metrics.text()
    expect(metrics).toContain('millrace_wake_mode{mode="sleeping"} 1')
    expect(metrics).not.toContain('mode="listening"')
    expect(door.statements.length).toBe(asked)
  }, 120_000)

  it('N4: sleeps where it only polls as well', async (test) => {
    const process = await asleep(test, { MILLRACE_LISTEN: '0' })
    const { world, door, delivery, pass, until } = process
    const [asked, came] = [door.statements.length, door.accepted()]
    await publishElsewhere(process, 'b')
    await pass(40 * minute)
    expect([door.statements.slice(asked), door.accepted()]).toEqual([[], came])
    delivery.forwarder.ring('all')
    await until(() => world.receiver.requests.length === 2)
    expect(delivery.forwarder.mode).toBe('polling')
  }, 120_000)

  it('stays up for who reads along, and comes back for who begins to', async (test) => {
    const { delivery, pass, until } = await asleep(test)
    const { forwarder } = delivery
    const wake = forwarder.subscribeWakes('all')
    await until(() => forwarder.mode === 'listening')
    await pass(10 * minute)
    expect(forwarder.mode).toBe('listening')
    wake.close()
    await pass(10 * minute)
    expect(forwarder.mode).toBe('sleeping')
    const listener = forwarder.listen('news')
    await until(() => forwarder.mode === 'listening')
    await listener.ready
    await pass(10 * minute)
    expect(forwarder.mode).toBe('listening')
    listener.close()
    await pass(10 * minute)
    expect(forwarder.mode).toBe('sleeping')
  }, 120_000)
})

async function ready({ world, door, delivery }: IdleProcess) {
  const db = createNodePostgresDb({ url: door.through(world.url) })
  try {
    return await readiness(db, delivery.forwarder)
  } finally {
    await db.close()
  }
}
