import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSystemPorts, systemClock } from '../../src/system-ports.ts'
import { claimWebhooks } from '../../src/webhooks/engine/claim-webhooks.ts'
import { flushOutcomes, type DeliveryRow, type LaneFlush } from '../../src/webhooks/engine/flush-outcomes.ts'
import { resumeWebhook } from '../../src/webhooks/operations/set-state.ts'
import { rotateSecret } from '../../src/webhooks/operations/rotate-secret.ts'
import { startMember } from './support/fleet.ts'
import { flushPart } from './support/flush-part.ts'
import { heldUp } from './support/held-up.ts'
import { createScriptedEndpoint, type Act } from './support/script.ts'
import { createWorld, type World } from './support/world.ts'

interface Told {
  type: string
  key: string
  data: Record<string, unknown>
}

const toldQuery = `select e.type, e.key, e.data from millrace.events e join millrace.streams s on s.id = e.stream_id
  where s.name = 'millrace.webhooks' order by e."offset"`
/** Every webhook is through with its stream, and nothing is in trouble. */
const openWork = `select count(*)::integer as open from millrace.webhooks w where w.state = 'active' and (
  w.lease_token is not null
  or w."offset" < (select max("offset") from millrace.events e where e.stream_id = w.stream_id)
  or exists (select from millrace.deliveries d where d.webhook_id = w.id and d.state <> 'dead'))`

const failedTooLong = `update millrace.webhooks set disable_after = now() - interval '1 day'`

describe('operational events', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  const told = () => world.sql<Told>(toldQuery)
  const allDone = () => world.until<{ open: number }>(openWork, ([row]) => row?.open === 0)
  const listener = (path: string, input: object = {}) =>
    world.webhook({ stream: 'millrace.webhooks', path, scheduleMs: [0, 20], ...input })

  async function leased(): Promise<string> {
    const token = crypto.randomUUID()
    const request = { scope: { kind: 'all' }, leaseMs: 30_000, limit: 10, environment: null } as const
    await claimWebhooks(world.db, { ...request, token })
    return token
  }

  function dead(offset: number): DeliveryRow {
    const answer = { status: 500, error: 'answered 500', answer: null }
    return { offset, unit: 'k', state: 'dead', attempts: 2, delayMs: 0, ...answer }
  }

  const flush = (part: LaneFlush) => flushOutcomes(world.db, [part], 30_000)

  it('tell once each of a dead letter, of failing and recovering, and of 410, to whoever subscribes', async () => {
    const { id } = await world.webhook({ path: '/orders', maxAttempts: 2, scheduleMs: [0, 20] })
    await listener('/told')
    world.receiver.answer(({ path, body }) =>
      path === '/orders' ? { status: body.includes('"n":2') ? 410 : body.includes('"n":1') ? 500 : 200 } : {},
    )
    world.start()
    const [, bad] = await world.publish(['a', 'b'])
    await world.until<Told>(toldQuery, (rows) => rows.length > 0)
    await allDone()
    await world.publish(['c', 'd', 'e'], 'orders')
    const events = await world.until<Told>(toldQuery, (rows) =>
      rows.some(({ type }) => type.endsWith('disabled')),
    )
    const exhausted = {
      ...{ webhookId: id, stream: 'orders', offset: bad, type: 'order.created', key: 'b' },
      ...{ attempts: 2, status: 500, error: 'answered 500' },
    }
    expect(events[0]).toEqual({ type: 'webhook.exhausted', key: id, data: exhausted })
    const reason = expect.stringContaining('410')
    expect(events.at(-1)).toEqual({
      type: 'webhook.disabled',
      key: id,
      data: { webhookId: id, stream: 'orders', reason },
    })
    const types = events.map(({ type }) => type)
    expect(types.filter((type) => type === 'webhook.exhausted')).toHaveLength(1)
    expect(types.filter((type) => type === 'webhook.disabled')).toHaveLength(1)
    const sent = await world.receiver.waitFor(
      (all) => all.filter(({ path }) => path === '/told').length >= events.length,
      20_000,
    )
    const bodies = sent.filter(({ path }) => path === '/told').map(({ body }) => JSON.parse(body.toString()))
    expect(bodies.map(({ type, data }) => ({ type, data }))).toEqual(
      events.map(({ type, data }) => ({ type, data })),
    )
  })

  it('tell of the first success after failures, and not of the second', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const token = await leased()
    await flush(flushPart(id, token, { failed: true }))
    await flush(flushPart(id, token, { failed: true }))
    expect(await told()).toEqual([])
    for (let times = 0; times < 2; times++) await flush(flushPart(id, token, { succeeded: true }))
    const failingSince = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
    const data = { webhookId: id, stream: 'orders', failingSince }
    expect(await told()).toEqual([{ type: 'webhook.recovered', key: id, data }])
  })

  it.each(['410 disabled it', 'five days of failing disabled it', 'it was paused'])(
    'tell of the first success after it was resumed, though %s, and since when it had failed',
    async (why) => {
      const { id } = await world.webhook()
      await world.publish(['k'])
      const token = await leased()
      await flush(flushPart(id, token, { failed: true }))
      const [failing] = await world.sql<{ since: Date }>(
        'select failing_since as since from millrace.webhooks',
      )
      await world.sql(why.startsWith('five') ? failedTooLong : 'select')
      const disable = why.startsWith('410') ? 'answered 410 Gone' : null
      await flush(flushPart(id, token, { failed: true, disable, release: true }))
      if (disable === null)
        await world.sql(`update millrace.webhooks set state = 'paused' where state = 'active'`)
      await resumeWebhook(world.db, id)
      for (let times = 0; times < 2; times++)
        await flush(flushPart(id, await leased(), { succeeded: true, release: true }))
      const recovered = (await told()).filter(({ type }) => type === 'webhook.recovered')
      expect(recovered).toHaveLength(1)
      expect(new Date(String(recovered[0]!.data.failingSince))).toEqual(failing!.since)
    },
  )

  it('tell once that five days of failing disabled a webhook; enabled again, it may happen again', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    for (let times = 1; times <= 2; times++) {
      await world.sql(failedTooLong)
      const token = await leased()
      for (let flushes = 0; flushes < 2; flushes++)
        await flush(flushPart(id, token, { failed: true, release: flushes === 1 }))
      const events = await told()
      expect(events).toHaveLength(times)
      expect(events.at(-1)!.data).toEqual({
        webhookId: id,
        stream: 'orders',
        reason: 'every attempt has failed for 5 days',
      })
      await resumeWebhook(world.db, id)
    }
  })

  it('tell of each rotation of a secret, and until when both sign', async () => {
    const { id } = await world.webhook()
    const first = await rotateSecret(world.db, id, {}, { sealer: null, clock: systemClock })
    const second = await rotateSecret(world.db, id, { overlapMs: 0 }, { sealer: null, clock: systemClock })
    const notice = (overlapUntil: string) => {
      return {
        type: 'webhook.secret_rotated',
        key: id,
        data: { webhookId: id, stream: 'orders', overlapUntil },
      }
    }
    expect(await told()).toEqual([notice(first.overlapUntil), notice(second.overlapUntil)])
    expect(JSON.stringify(await told())).not.toContain('whsec_')
  })

  it('tell nothing of a worker that lost its lease (W5)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    await leased()
    await world.sql(failedTooLong)
    const stale = crypto.randomUUID()
    await flush(flushPart(id, stale, { rows: [dead(1)], failed: true, disable: 'gone' }))
    await flush(flushPart(id, stale, { succeeded: true }))
    expect(await told()).toEqual([])
  })

  it('tell once of what a repeated flush carries, also when the first went through in the midst of the second', async () => {
    const { id } = await world.webhook()
    await world.publish(['k', 'l'])
    const token = await leased()
    const part = flushPart(id, token, { offset: 1, rows: [dead(1)], failed: true })
    for (let times = 0; times < 2; times++) await flush(part)
    expect(await told()).toHaveLength(1)
    const next = flushPart(id, token, { offset: 2, rows: [dead(2)], failed: true })
    const overtaken = await heldUp(
      world,
      (db) => flushOutcomes(db, [next], 30_000),
      () => flush(next),
    )
    expect(overtaken).toMatchObject({ held: [{ webhookId: id }], busy: [] })
    expect((await told()).map(({ data }) => data.offset)).toEqual([1, 2])
  })

  it('tell of a dead letter again when it was redriven and died again', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const token = await leased()
    await flush(flushPart(id, token, { offset: 1, rows: [dead(1)], failed: true }))
    await flush(flushPart(id, token, { offset: 1, rows: [{ ...dead(1), state: 'retrying' }], failed: true }))
    await flush(flushPart(id, token, { offset: 1, rows: [dead(1)], failed: true }))
    expect(await told()).toHaveLength(2)
  })

  it('are each told exactly once while workers lose answers and are killed (W1, W5)', async () => {
    const ports = createSystemPorts()
    const { id } = await world.webhook({ ordering: 'none', maxAttempts: 2, scheduleMs: [0, 10] })
    const offsets = await world.publish(Array.from({ length: 60 }, () => null))
    const bad = new Set(offsets.filter((_, index) => index % 3 === 0))
    // attempts whose lease was lost do not count, so it may take many
    const always = Array.from({ length: 1_000 }, (): Act => 'bad')
    const acts = (_id: string, offset: number): Act[] => (bad.has(offset) ? always : [])
    const endpoint = createScriptedEndpoint(ports.clock, acts)
    const settings = { flushMs: 5, leaseMs: 400, lingerMs: 0, maxWindow: 8, maxConcurrency: 4 }
    const { db } = world
    const member = (name: string) =>
      startMember({ name, db, delivery: endpoint.deliveryFor(name), settings, pollMs: 50 })
    const [first, second] = [member('first'), member('second')]
    first.loseNextFlush()
    second.loseNextFlush()
    await world.until<Told>(toldQuery, (rows) => rows.length > 2)
    first.cut()
    const third = member('third')
    third.loseNextFlush()
    await allDone()
    for (const one of [first, second, third]) await one.stop()
    const exhausted = (await told()).filter(({ type }) => type === 'webhook.exhausted')
    const order = (a: number, b: number): number => a - b
    expect(exhausted.map(({ data }) => Number(data.offset)).toSorted(order)).toEqual([...bad].toSorted(order))
    expect(new Set(exhausted.map(({ key }) => key))).toEqual(new Set([id]))
  })

  it('do not feed themselves: a webhook that listens to them and fails brings about no more of them', async () => {
    const { id } = await world.webhook({ path: '/orders', maxAttempts: 1 })
    for (const path of ['/a', '/b']) await listener(path, { maxAttempts: 2 })
    world.receiver.answer({ status: 500 })
    world.start()
    await world.publish(['k'])
    await world.until<Told>(toldQuery, (rows) => rows.length > 0)
    await allDone()
    expect((await told()).map(({ type, key }) => [type, key])).toEqual([['webhook.exhausted', id]])
    const deaths = await world.sql('select from millrace.deliveries where state = $1', ['dead'])
    expect(deaths).toHaveLength(3)
    // once it works again, that is not told either, but that it is gone for good is
    world.receiver.answer(({ path }) => ({ status: path === '/b' ? 410 : 200 }))
    await rotateSecret(world.db, id, {}, { sealer: null, clock: systemClock })
    const events = await world.until<Told>(toldQuery, (rows) => rows.length >= 3)
    await allDone()
    expect(await told()).toEqual(events)
    expect(events.map(({ type }) => type).slice(1)).toEqual(['webhook.secret_rotated', 'webhook.disabled'])
  })

  it('hold no flush up while somebody creates a webhook on their stream, in a transaction left open (W4)', async () => {
    const { id } = await world.webhook()
    await world.publish(['k'])
    const token = await leased()
    const client = new pg.Client({ connectionString: world.url })
    await client.connect()
    world.onClose(() => client.end())
    await client.query('begin')
    await client.query(
      `select * from millrace.append('millrace.webhooks', '{t}', '{null}', '{1}', '{null}', null, null)`,
    )
    expect(await flush(flushPart(id, token, { offset: 1, rows: [dead(1)], failed: true }))).toMatchObject({
      busy: [],
    })
    expect(await told()).toHaveLength(1)
  })
})
