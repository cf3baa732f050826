import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGate, type ReceivedRequest } from '../support/receiver.ts'
import { createWorld, offsetOf, type World } from './support/world.ts'

describe('trouble stays where it is (W4)', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  const keyAt = (offsets: number[], keys: string[]) => (request: ReceivedRequest) =>
    keys[offsets.indexOf(offsetOf(request))]

  it('a key that always fails delays no other key', async () => {
    await world.webhook({ scheduleMs: [0, 60_000] })
    const keys = Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? 'bad' : `good${n % 7}`))
    const offsets = await world.publish(keys)
    const keyOf = keyAt(offsets, keys)
    world.receiver.answer((request) => ({ status: keyOf(request) === 'bad' ? 500 : 200 }))
    world.start()
    await world.receiver.waitFor((all) => all.filter((one) => keyOf(one) !== 'bad').length === 40, 20_000)
    expect(world.receiver.requests.filter((one) => keyOf(one) === 'bad')).toHaveLength(1)
    await world.until<{ offset: string }>(
      'select "offset"::text from millrace.webhooks',
      ([row]) => Number(row?.offset) === offsets.at(-1),
    )
    const states = await world.sql(
      'select state, count(*)::integer from millrace.deliveries group by 1 order by 1',
    )
    expect(states).toEqual([
      { state: 'blocked', count: 19 },
      { state: 'retrying', count: 1 },
    ])
  })

  it('a webhook that fails and one that hangs delay no other', async () => {
    const gate = createGate()
    world.onClose(gate.open)
    await world.webhook({ path: '/fails', scheduleMs: [0, 60_000] })
    await world.webhook({ path: '/hangs' })
    await world.webhook({ path: '/good' })
    world.receiver.answer(({ path }) =>
      path === '/fails' ? { status: 500 } : path === '/hangs' ? { until: gate.opened } : {},
    )
    world.start({ engine: { maxSends: 4, maxSendsPerHost: 4 } })
    await world.publish(Array.from({ length: 100 }, (_, n) => `k${n}`))
    await world.receiver.waitFor((all) => all.filter(({ path }) => path === '/good').length === 100, 20_000)
    // what hangs no longer counts against the process, but still against its own webhook
    expect(world.receiver.requests.filter(({ path }) => path === '/hangs').length).toBeLessThanOrEqual(32)
  })

  it('a slow head of a full window is recorded, and what is behind passes it', async () => {
    const gate = createGate()
    world.onClose(gate.open)
    await world.webhook({ timeoutMs: 30_000 })
    world.receiver.answerNext({ until: gate.opened })
    world.start({ engine: { maxWindow: 8, spillAfterMs: 100, flushMs: 20 } })
    const offsets = await world.publish([
      'slow',
      ...Array.from({ length: 50 }, (_, n) => `k${n % 5}`),
      'slow',
    ])
    await world.receiver.waitFor(51, 20_000)
    await world.until<{ offset: string }>(
      'select "offset"::text from millrace.webhooks',
      ([row]) => Number(row?.offset) === offsets.at(-1),
    )
    expect(await world.sql('select "offset"::integer, state from millrace.deliveries order by 1')).toEqual([
      { offset: offsets[0], state: 'retrying' },
      { offset: offsets.at(-1), state: 'blocked' },
    ])
    // made due by an operator while it is still on its way: it is not sent beside itself
    await world.sql(`update millrace.deliveries set due_at = now() where state = 'retrying'`)
    offsets.push(...(await world.publish(['another'])))
    await world.receiver.waitFor(52, 20_000)
    await world.until<{ offset: string }>(
      'select "offset"::text from millrace.webhooks',
      ([row]) => Number(row?.offset) === offsets.at(-1),
    )
    gate.open()
    await world.until<{ n: number }>(
      'select count(*)::integer as n from millrace.deliveries',
      ([row]) => row?.n === 0,
    )
    expect(world.receiver.requests.map(offsetOf).toSorted((a, b) => a - b)).toEqual(offsets)
  })

  it('a slow head of a window that is full by size is passed as well', async () => {
    const gate = createGate()
    world.onClose(gate.open)
    await world.webhook({ timeoutMs: 30_000 })
    world.receiver.answerNext({ until: gate.opened })
    world.start({ engine: { maxWindowBytes: 30, spillAfterMs: 100, flushMs: 20 } })
    const [slow] = await world.publish(['slow', ...Array.from({ length: 20 }, (_, n) => `k${n}`)])
    await world.receiver.waitFor((all) => all.filter(({ answered }) => answered).length === 20, 20_000)
    expect(world.receiver.requests.filter(({ answered }) => !answered).map(offsetOf)).toEqual([slow])
  })

  it('a transaction that sits on one webhook delays the outcomes of no other', async () => {
    const { id } = await world.webhook({ path: '/locked' })
    const other = await world.webhook({ path: '/free' })
    const gate = createGate()
    world.onClose(gate.open)
    world.receiver.answer({ until: gate.opened })
    world.start({ engine: { leaseMs: 5_000 } })
    const [offset] = await world.publish(['k'])
    await world.receiver.waitFor(2, 20_000)
    const commit = createGate()
    const held = world.db.transaction(async (tx) => {
      const { eq } = await import('drizzle-orm')
      const { webhooks } = world.db.tables
      await tx.drizzle.update(webhooks).set({ rateLimit: 1000 }).where(eq(webhooks.id, id))
      gate.open()
      await commit.opened
    })
    await world.until<{ offset: string }>(
      `select "offset"::text from millrace.webhooks where id = '${other.id}'`,
      ([row]) => Number(row?.offset) === offset,
    )
    commit.open()
    await held
    await world.until<{ offset: string }>(
      `select "offset"::text from millrace.webhooks where id = '${id}'`,
      ([row]) => Number(row?.offset) === offset,
    )
    expect(world.receiver.requests).toHaveLength(2)
  })
})
