import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createDrivenClock } from '../support/clock.ts'
import { countStatements, kindOf } from './support/counting-db.ts'
import { startMember } from './support/fleet.ts'
import { createScriptedEndpoint } from './support/script.ts'
import { createWorld, firstArrivals, type World } from './support/world.ts'

describe('statements', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('a page is read once for a hundred webhooks of a stream', async () => {
    const endpoint = createScriptedEndpoint(createSystemPorts().clock, () => [])
    for (let n = 0; n < 100; n++) await world.webhook()
    const offsets = await world.publish(['a', 'b', 'c', null])
    const member = startMember({ name: 'one', db: world.db, delivery: endpoint.deliveryFor('one') })
    world.onClose(() => member.stop())
    await world.until<{ n: number }>(
      `select count(*)::integer as n from millrace.webhooks
       where "offset" < ${offsets.at(-1)!} or lease_token is not null`,
      ([row]) => row?.n === 0,
    )
    expect(endpoint.history).toHaveLength(400)
    expect(member.counting.statements.filter((text) => kindOf(text) === 'read')).toHaveLength(1)
  })

  it('a full window is stored by halves, not a few events at a time', async () => {
    await world.webhook()
    const { db, statements } = countStatements(world.db)
    await world.publish(Array.from({ length: 96 }, (_, n) => `k${n}`))
    // no flush by the time alone
    world.start({ db, engine: { maxWindow: 8, maxConcurrency: 1, flushMs: 60_000, lingerMs: 0 } })
    await world.receiver.waitFor(96, 20_000)
    expect(firstArrivals(world.receiver.requests)).toHaveLength(world.receiver.requests.length)
    const flushes = statements.filter((text) => kindOf(text) === 'flush').length
    expect(flushes).toBeGreaterThan(96 / 8 - 2)
    expect(flushes).toBeLessThanOrEqual(96 / 4)
  })

  it('claims not with every event for a webhook that is being worked on, and still comes to its siblings', async () => {
    const endpoint = createScriptedEndpoint(createSystemPorts().clock, () => [])
    await world.webhook()
    const member = startMember({ name: 'one', db: world.db, delivery: endpoint.deliveryFor('one') })
    world.onClose(() => member.stop())
    const publish = async (): Promise<void> => {
      await world.publish(['a'])
      const [stream] = await world.sql<{ id: number }>(
        `select id from millrace.streams where name = 'orders'`,
      )
      member.wake(`s${stream!.id}`)
    }
    await publish()
    await world.until('select 1', () => endpoint.history.length === 1)
    const before = member.counting.statements.length
    const began = performance.now()
    for (let n = 2; n <= 40; n++) {
      await publish()
      await world.until('select 1', () => endpoint.history.length === n)
    }
    const claims = member.counting.statements.slice(before).filter((text) => kindOf(text) === 'claim')
    // two for each time that it came to rest, and one each second: nobody else is there to be claimed
    expect(claims.length).toBeLessThan(4 + (performance.now() - began) / 300)
    expect(claims.length).toBeLessThan(39)
    await world.webhook()
    await publish()
    await world.until(
      'select 1',
      () => new Set(endpoint.history.map(({ webhookId }) => webhookId)).size === 2,
    )
  })

  it('with wakes on and nothing due, ten minutes pass without any', async () => {
    const clock = createDrivenClock(Date.now())
    await world.webhook()
    const { db, statements } = countStatements(world.db)
    // the end goes by the clock as well
    let pump: ReturnType<typeof setInterval> | undefined
    world.onClose(() => clearInterval(pump))
    const delivery = world.start({ db, ports: { ...createSystemPorts(), clock } })
    world.onClose(() => void (pump = setInterval(() => void clock.advance(50), 5)))
    await delivery.forwarder.waitFor('listening')
    const [offset] = await world.publish(['a'])
    await world.receiver.waitFor(1, 20_000)
    // what lingers and flushes goes by the clock: drive it until the lease is back and the last claim is made
    await world.until<{ offset: string; lease_token: string | null }>(
      'select "offset"::text, lease_token from millrace.webhooks',
      ([row]) => {
        void clock.advance(50)
        return Number(row?.offset) === offset && row?.lease_token === null
      },
    )
    let before = -1
    await world.until('select 1', () => {
      const settled = before === statements.length && kindOf(statements.at(-1)!) === 'claim'
      before = statements.length
      return settled
    })
    // what was published may be too old some day: a minute later that is looked at, once
    const published = statements.length
    await clock.advance(61_000)
    // the retention of streams, then that of attempts, by age and by number
    await world.until(
      'select 1',
      () => statements.slice(published).filter((text) => text.includes('"attempts"')).length === 2,
    )
    const quiet = statements.length
    for (let minute = 0; minute < 10; minute++) await clock.advance(60_000)
    expect(statements.slice(quiet).map(kindOf)).toEqual([])
    // and it is not merely dead
    await world.publish(['b'])
    await world.until('select 1', () => {
      void clock.advance(10)
      return world.receiver.requests.length === 2
    })
  })

  it('what a publisher holds back is looked at about once a second, and comes when it rolls back (S1, N4)', async () => {
    const endpoint = createScriptedEndpoint(createSystemPorts().clock, () => [])
    await world.webhook()
    await world.publish(['a'])
    const member = startMember({ name: 'one', db: world.db, delivery: endpoint.deliveryFor('one') })
    world.onClose(() => member.stop())
    await world.until('select 1', () => endpoint.history.length === 1)
    let release = (): void => {}
    const open = new Promise<void>((resolve) => (release = resolve))
    const rolledBack = world.db
      .transaction(async (tx) => {
        await tx.drizzle.execute(
          `select millrace.append('orders', array['t'], array[null]::text[], array['0'], array[null]::text[], null, null)`,
        )
        await open
        throw new Error('rolled back')
      })
      .catch(() => {})
    await world.until(
      `select from pg_catalog.pg_locks where locktype = 'advisory'`,
      (rows) => rows.length > 0,
    )
    await world.publish(['b'])
    member.wake('all')
    const before = member.counting.statements.length
    const began = performance.now()
    await world.until('select 1', () => performance.now() - began > 2_500)
    const rate = (member.counting.statements.length - before) / ((performance.now() - began) / 1_000)
    expect(rate).toBeLessThan(6)
    expect(endpoint.history).toHaveLength(1)
    release()
    await rolledBack
    // nobody is woken by a rollback
    await world.until('select 1', () => endpoint.history.length === 2)
  })

  it('a forwarder with fewer lanes than webhooks comes to all of them (W1)', async () => {
    const endpoint = createScriptedEndpoint(createSystemPorts().clock, () => [])
    for (let n = 0; n < 7; n++) {
      await world.webhook({ stream: `s${n}` })
      await world.publish(['a'], `s${n}`)
    }
    const member = startMember({
      name: 'one',
      db: world.db,
      delivery: endpoint.deliveryFor('one'),
      settings: { maxLanes: 2 },
    })
    world.onClose(() => member.stop())
    const reached = () => new Set(endpoint.history.map(({ webhookId }) => webhookId)).size
    await world.until('select 1', () => reached() === 7)
    expect(endpoint.history).toHaveLength(7)
  })
})
