import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { defaultEngineSettings } from '../../src/webhooks/engine/engine-settings.ts'
import type { ReceivedRequest } from '../support/receiver.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'
import { countStatements, kindOf } from './support/counting-db.ts'
import { startForwarderProcess, type ForwarderProcess } from './support/forwarder-process.ts'
import { createWorld, firstArrivals, insecureSettings, offsetOf, type World } from './support/world.ts'

const paths = ['/1', '/2', '/3', '/4', '/5']

/** Requests that are not the first of their event at their webhook. */
function duplicatesOf(requests: readonly ReceivedRequest[]): ReceivedRequest[] {
  const first = new Set(firstArrivals(requests))
  return requests.filter((request) => !first.has(request))
}

function idOf({ path, headers }: ReceivedRequest): string {
  return `${path} ${String(headers['webhook-id'])}`
}

describe('forwarders', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('two at work, one killed half-way: all is delivered, in order per key, and little twice (W1, W2, W3)', async () => {
    const keys = Array.from({ length: 2_000 }, (_, n) => `k${n % 50}`)
    for (const path of paths) await world.webhook({ path })
    const offsets: number[] = []
    for (let at = 0; at < keys.length; at += 500)
      offsets.push(...(await world.publish(keys.slice(at, at + 500))))
    const arrived = new Set<string>()
    world.receiver.answer((request) => {
      arrived.add(idOf(request))
      return {}
    })
    const env = { MILLRACE_LEASE_MS: '6000' }
    const killed = startForwarderProcess(world.url, env)
    world.onClose(() => killed.kill())
    // the first to come takes all five; the second stands by, and competes for what falls free
    await world.receiver.waitFor(100, 120_000)
    const other = startForwarderProcess(world.url, env)
    world.onClose(() => other.kill())
    await other.ready()
    await world.receiver.waitFor(5_000, 120_000)
    await killed.kill()
    await world.receiver.waitFor(() => arrived.size === 10_000, 120_000)
    await world.until<{ n: number }>(
      `select count(*)::integer as n from millrace.webhooks where "offset" < ${offsets.at(-1)!}`,
      ([row]) => row?.n === 0,
    )
    expect(await other.stop()).toBe(0)
    for (const path of paths) expectComplete(path, offsets, keys)
    for (const [path, hands] of await holdersOf()) {
      // what one had sent above the offset in the database when it lost the webhook: a window, at each change of hands
      const again = duplicatesOf(world.receiver.requests.filter((request) => request.path === path))
      expect(again.length).toBeLessThanOrEqual(defaultEngineSettings.maxWindow * (hands - 1))
    }
  }, 400_000)

  /** How many leases there have been of each path's webhook. */
  async function holdersOf(): Promise<[string, number][]> {
    const rows = await world.sql<{ url: string; hands: number }>(
      'select url, lease_fence::integer as hands from millrace.webhooks',
    )
    return rows.map(({ url, hands }) => [new URL(url).pathname, hands])
  }

  function expectComplete(path: string, offsets: number[], keys: string[]): void {
    const mine = world.receiver.requests.filter((request) => request.path === path)
    const keyAt = new Map(offsets.map((offset, index) => [offset, keys[index]!]))
    const arrived = firstArrivals(mine).map(offsetOf)
    expect(arrived.toSorted((a, b) => a - b)).toEqual(offsets)
    for (const key of new Set(keys)) {
      const order = arrived.filter((offset) => keyAt.get(offset) === key)
      expect(order).toEqual(order.toSorted((a, b) => a - b))
    }
    const bodies = new Map(firstArrivals(mine).map((request) => [idOf(request), request.body]))
    for (const request of mine) expect(request.body.equals(bodies.get(idOf(request))!)).toBe(true)
  }

  it('stop cleanly when asked: what is left another delivers at once, and nothing twice', async () => {
    for (const path of paths) await world.webhook({ path })
    const first: ForwarderProcess = startForwarderProcess(world.url)
    world.onClose(() => first.kill())
    const offsets = await world.publish(Array.from({ length: 1_000 }, (_, n) => `k${n % 20}`))
    await world.receiver.waitFor(500, 120_000)
    expect(await first.stop()).toBe(0)
    expect(await world.sql('select from millrace.webhooks where lease_token is not null')).toEqual([])
    world.start()
    await world.receiver.waitFor(5_000, 120_000)
    await world.until<{ n: number }>(
      `select count(*)::integer as n from millrace.webhooks where "offset" < ${offsets.at(-1)!}`,
      ([row]) => row?.n === 0,
    )
    expect(duplicatesOf(world.receiver.requests).map(idOf)).toEqual([])
  }, 300_000)

  it('deliver by polling while the LISTEN is down, and by wakes once it stands again (N2, N4)', async () => {
    const { hostname, port } = new URL(world.url)
    const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
    const db = createNodePostgresDb({ url: world.url, directUrl: proxy.through(world.url) })
    world.onClose(() => proxy.close())
    world.onClose(() => db.close())
    await world.webhook()
    const delivery = world.start({ db })
    await delivery.forwarder.waitFor('listening')
    await world.publish(['a'])
    await world.receiver.waitFor(1, 20_000)

    proxy.refuse()
    await world.sql(
      `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
       where datname = current_database() and query ilike 'listen%'`,
    )
    await delivery.forwarder.waitFor('degraded')
    await world.publish(['b'])
    await world.receiver.waitFor(2, 30_000)
    expect(delivery.forwarder.mode).toBe('degraded')

    proxy.heal()
    await delivery.forwarder.waitFor('listening')
    await world.publish(['c'])
    await world.receiver.waitFor(3, 20_000)
    expect(delivery.forwarder.mode).toBe('listening')
  }, 90_000)

  it('lose no outcome when the connection breaks in the midst of a flush, and send nothing again (W1)', async () => {
    const { hostname, port } = new URL(world.url)
    const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
    const proxied = createNodePostgresDb({ url: proxy.through(world.url), directUrl: world.url })
    world.onClose(() => proxy.close())
    world.onClose(() => proxied.close())
    const { db, before } = countStatements(proxied)
    let cuts = 0
    before((text) => {
      if (kindOf(text) === 'flush' && cuts++ < 3) setImmediate(proxy.cut)
    })
    await world.webhook({ scheduleMs: [0, 50] })
    const failed = new Set<string>()
    world.receiver.answer((request) => {
      const fails = offsetOf(request) % 10 === 0 && !failed.has(idOf(request))
      if (fails) failed.add(idOf(request))
      return { status: fails ? 500 : 200 }
    })
    world.start({ db })
    // a flush may be answered before it is cut
    for (let rounds = 0; cuts < 3 && rounds < 20; rounds++) {
      const offsets = await world.publish(Array.from({ length: 200 }, (_, n) => `k${n % 9}`))
      await world.until<{ n: number }>(
        `select ((select count(*) from millrace.deliveries) + (select count(*) from millrace.webhooks
         where "offset" < ${offsets.at(-1)!}))::integer as n`,
        ([row]) => row?.n === 0,
      )
    }
    expect(cuts).toBeGreaterThanOrEqual(3)
    expect(duplicatesOf(world.receiver.requests)).toHaveLength(failed.size)
  })

  it('deliver the same with no wakes at all (N4)', async () => {
    await world.webhook()
    const delivery = world.start({ settings: { ...insecureSettings, listen: false } })
    await delivery.forwarder.waitFor('polling')
    const offsets = await world.publish(['a', 'a', 'b'])
    await world.receiver.waitFor(3, 20_000)
    offsets.push(...(await world.publish(['a'])))
    await world.receiver.waitFor(4, 20_000)
    expect(world.receiver.requests.map(offsetOf).toSorted((a, b) => a - b)).toEqual(offsets)
  })
})
