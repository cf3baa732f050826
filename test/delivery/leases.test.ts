import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Db } from '../../src/db/port.ts'
import { createGate } from '../support/receiver.ts'
import { countStatements, kindOf } from './support/counting-db.ts'
import { createWorld, firstArrivals, offsetOf, type World } from './support/world.ts'

interface WebhookRow {
  offset: string
  state: string
  lease_token: string | null
  lease_fence: string
}

const webhookRows =
  'select "offset"::text, state, lease_token::text, lease_fence::text from millrace.webhooks'

/** A database for an engine, and a wait for so many of its flushes to be answered. */
function countFlushes(world: World): { db: Db; flushes(count: number): Promise<unknown> } {
  const counting = countStatements(world.db)
  let answered = 0
  counting.after((text) => {
    if (kindOf(text) === 'flush') answered++
  })
  return { db: counting.db, flushes: (count) => world.until('select 1', () => answered >= count) }
}

describe('leases', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('a worker that lost its lease writes nothing, however late its answer comes (W5)', async () => {
    await world.webhook()
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answerNext({ until: gate.opened, status: 500 })
    const { db, flushes } = countFlushes(world)
    world.start({ db })
    await world.publish(['k', 'k'])
    await world.receiver.waitFor(1, 20_000)
    await world.sql(
      `update millrace.webhooks set lease_token = gen_random_uuid(), lease_until = now() + interval '1 hour', lease_fence = 99`,
    )
    gate.open()
    await world.receiver.waitFor((all) => all[0]!.answered, 20_000)
    // the failure is to be written: the statement runs, and finds the lease gone
    await flushes(1)
    const [row] = await world.sql<WebhookRow>(webhookRows)
    expect(row).toMatchObject({ offset: '0', lease_fence: '99' })
    expect(await world.sql('select from millrace.deliveries')).toEqual([])
    expect(await world.sql('select from millrace.attempts')).toEqual([])
    expect(world.receiver.requests).toHaveLength(1)
  })

  it('are renewed under a slow answer: an endpoint that takes several leases is sent to once', async () => {
    await world.webhook({ timeoutMs: 30_000 })
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answerNext({ until: gate.opened })
    const engine = { leaseMs: 2_000 }
    world.start({ engine })
    world.start({ engine })
    const offsets = await world.publish(['k', 'k'])
    await world.receiver.waitFor(1, 20_000)
    const [claimed] = await world.sql<{ lease_until: Date; lease_fence: string }>(
      'select lease_until, lease_fence::text from millrace.webhooks',
    )
    // three renewals later it is still the same holder's
    const later = new Date(claimed!.lease_until.getTime() + 3_000).toISOString()
    await world.until<{ late: boolean }>(
      `select lease_until > '${later}' as late from millrace.webhooks`,
      ([row]) => row?.late === true,
    )
    gate.open()
    await world.until<WebhookRow>(webhookRows, ([row]) => Number(row?.offset) === offsets[1])
    expect(world.receiver.requests.map(offsetOf)).toEqual(offsets)
    const [row] = await world.sql<WebhookRow>(webhookRows)
    expect(row!.lease_fence).toBe(claimed!.lease_fence)
  })

  it('go back at once on a clean stop, what is in flight is finished, and another takes over', async () => {
    await world.webhook()
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answerNext({ until: gate.opened })
    const first = world.start()
    const offsets = await world.publish(['k', 'k', 'k'])
    await world.receiver.waitFor(1, 20_000)
    const stopping = first.stop({ withinMs: 20_000 })
    gate.open()
    await stopping
    const [row] = await world.sql<WebhookRow>(webhookRows)
    // how far it came is written: nothing is sent again
    expect(row).toMatchObject({ lease_token: null })
    expect(Number(row!.offset)).toBeGreaterThanOrEqual(offsets[0]!)
    world.start()
    await world.receiver.waitFor(3, 20_000)
    await world.until<WebhookRow>(webhookRows, ([one]) => Number(one?.offset) === offsets[2])
    expect(world.receiver.requests.map(offsetOf)).toEqual(offsets)
  })

  it('go back on a stop that breaks off what hangs, and the other sends it again, with the same id (W2)', async () => {
    await world.webhook()
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answerNext({ until: gate.opened })
    const first = world.start()
    const offsets = await world.publish(['k', 'k'])
    await world.receiver.waitFor(1, 20_000)
    await first.stop({ withinMs: 10 })
    const [row] = await world.sql<WebhookRow>(webhookRows)
    expect(row).toMatchObject({ lease_token: null, offset: String(offsets[0]! - 1) })
    expect(await world.sql('select from millrace.attempts')).toEqual([])
    world.start()
    await world.receiver.waitFor(3, 20_000)
    expect(world.receiver.requests.map(offsetOf)).toEqual([offsets[0], ...offsets])
    expect(world.receiver.requests[1]!.body).toEqual(world.receiver.requests[0]!.body)
  })

  it('a send that was recorded for being slow, and broken off by a stop, is due at once', async () => {
    await world.webhook({ timeoutMs: 30_000 })
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answerNext({ until: gate.opened })
    const engine = { maxWindow: 2, spillAfterMs: 50, flushMs: 20 }
    const first = world.start({ engine })
    const offsets = await world.publish(['slow', 'a', 'b', 'c'])
    await world.receiver.waitFor(4, 20_000)
    await first.stop({ withinMs: 10 })
    world.start({ engine })
    await world.receiver.waitFor(5, 20_000)
    expect(offsetOf(world.receiver.requests[4]!)).toBe(offsets[0])
  })

  for (const change of ['paused', 'deleted'] as const) {
    it(`a webhook that is ${change} with work in flight is let go of, and not taken again`, async () => {
      const { id } = await world.webhook()
      const gate = createGate()
      world.onClose(gate.open)
      world.receiver.answer({ until: gate.opened })
      let claims = 0
      const { db, flushes } = countFlushes(world)
      world.start({ db, onClaim: () => void claims++ })
      await world.publish(Array.from({ length: 100 }, (_, n) => `k${n % 4}`))
      await world.receiver.waitFor(4, 20_000)
      await world.sql(
        change === 'paused'
          ? `update millrace.webhooks set state = 'paused'`
          : 'delete from millrace.webhooks',
      )
      await world.sql(`select pg_catalog.pg_notify('millrace.wake', 'w' || $1)`, [id])
      // a lane that knows begins nothing more
      await flushes(1)
      gate.open()
      await world.until<WebhookRow>(webhookRows, (all) => all.every((row) => row.lease_token === null))
      await world.until('select 1', () => world.receiver.open() === 0)
      const sent = world.receiver.requests.length
      expect(sent).toBeLessThan(20)
      const claimed = claims
      // a wake for another stream is looked at: still nothing is taken
      await world.publish(['x'], 'another')
      await world.until('select 1', () => claims > claimed)
      expect(world.receiver.requests).toHaveLength(sent)
      expect(claims - claimed).toBeLessThan(5)
      if (change === 'deleted') return
      await world.sql(`update millrace.webhooks set state = 'active'`)
      await world.sql(`select pg_catalog.pg_notify('millrace.wake', 'w' || $1)`, [id])
      await world.receiver.waitFor((all) => firstArrivals(all).length === 100, 20_000)
      expect(firstArrivals(world.receiver.requests)).toHaveLength(world.receiver.requests.length)
    })
  }
})
