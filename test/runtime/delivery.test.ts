import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startForwarder } from '../../src/node/run-forwarder.ts'
import { readSettings } from '../../src/settings.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { countServerStatements } from '../support/server-statements.ts'
import { expectInOrder, failTwice } from './support/deliveries.ts'
import type { MeasuredInvocation } from './support/measure.ts'
import { encryptionKey, startSite, type Site, type SiteOptions } from './support/site.ts'

const keys = 10
const attempts = 3
/** All 200 on the way that is the most usual; where another way differs from it, fewer show it. */
const many = 200
const some = process.env.MILLRACE_LONG_TESTS === '1' ? many : 60
const batch = 5
const limit = 50

let receiver: Receiver
const open: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  receiver = await startReceiver()
  failTwice(receiver)
})
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
  await receiver.close()
})

async function site(options?: SiteOptions): Promise<Site> {
  const started = await startSite(options)
  open.push(() => started.close())
  return started
}

/** A webhook that tries again at once, and three times at most. */
function createWebhook(at: Site, stream: string): Promise<unknown> {
  const retries = { scheduleMs: [0, 0, 0], jitterPercent: 0, maxAttempts: 3 }
  return at.call('POST', '/v1/webhooks', { stream, url: `${receiver.url}/hook`, ordering: 'key', ...retries })
}

async function publishAll(at: Site, stream: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += batch) {
    const events = Array.from({ length: batch }, (_, index) => from + index).map((n) => {
      return { type: 'made', key: `k${n % keys}`, data: { n } }
    })
    await at.call('POST', `/v1/streams/${stream}/events`, events)
  }
}

/** Runs the cron handler, as the platform does each minute, until all has arrived; at most so many times. */
async function runCron(at: Site, count: number, worker?: string): Promise<void> {
  for (let runs = 0; runs < 200 && receiver.requests.length < count * attempts; runs++)
    await at.workerd.cron(worker)
}

function expectWithinLimits(invocations: readonly MeasuredInvocation[]): void {
  for (const { total, refused } of invocations) {
    expect(refused).toBe(0)
    expect(total).toBeLessThanOrEqual(limit)
  }
}

const ofKind = (invocations: readonly MeasuredInvocation[], kind: string) =>
  invocations.filter((invocation) => invocation.kind === kind)

const ways = [
  ['by fetch', many, 'test/runtime/support/measured-edge.ts'],
  ["over Neon's own driver", some, 'test/runtime/support/measured-neon-driver.ts'],
] as const

describe('with no forwarder anywhere, events whose first two attempts fail', () => {
  it.each(ways)(
    'W1 W3: %s, %i are delivered in order by waitUntil and cron, within the requests of each invocation',
    async (_way, count, entry) => {
      const edge = await site({ entry })
      await createWebhook(edge, 'orders')
      await publishAll(edge, 'orders', count)
      await runCron(edge, count)
      const invocations = await edge.settled()
      expectInOrder(receiver.requests, { count, keys, attempts })
      expectWithinLimits(invocations)
      expect(ofKind(invocations, 'scheduled').length).toBeGreaterThan(0)
    },
    180_000,
  )

  it('W1 W3: are delivered in order by the consumer of a bound queue alone', async () => {
    const queue = 'wakes'
    const edge = await site({
      options: {
        queueProducers: { MILLRACE_QUEUE: queue },
        queueConsumers: { [queue]: { maxBatchSize: 100, maxBatchTimeout: 0 } },
      },
    })
    await createWebhook(edge, 'orders')
    await publishAll(edge, 'orders', some)
    await receiver.waitFor(some * attempts, 120_000)
    const invocations = await edge.settled()
    expectInOrder(receiver.requests, { count: some, keys, attempts })
    expectWithinLimits(invocations)
    const published = ofKind(invocations, 'fetch').slice(1)
    expect(published.map((invocation) => edge.statements(invocation))).toEqual(published.map(() => 1))
    expect(ofKind(invocations, 'queue').length).toBeGreaterThan(1)
  }, 180_000)
})

it('W3 W5: two edges and a forwarder at once send nothing twice', async () => {
  const edges = await site({ workers: ['edge', 'second'] })
  await createWebhook(edges, 'orders')
  const env = {
    DATABASE_URL: edges.databaseUrl,
    MILLRACE_ENCRYPTION_KEY: encryptionKey,
    MILLRACE_ALLOW_INSECURE_TARGETS: '1',
  }
  const forwarder = await startForwarder(readSettings(env), createSystemPorts())
  open.push(() => forwarder.stop())
  await Promise.all([publishAll(edges, 'orders', some), runCron(edges, some), runCron(edges, some, 'second')])
  await receiver.waitFor(some * attempts, 60_000)
  expectWithinLimits(await edges.settled())
  expectInOrder(receiver.requests, { count: some, keys, attempts })
}, 180_000)

it('W7: an edge of another environment publishes and reads, but delivers nothing and says so', async () => {
  const edge = await site({ bindings: { MILLRACE_ENVIRONMENT: 'preview' } })
  await createWebhook(edge, 'orders')
  await edge.call('POST', '/v1/streams/orders/events', { type: 'made', data: { n: 1 } })
  await edge.workerd.cron()
  const invocations = await edge.settled()
  const page = await edge.call('GET', '/v1/streams/orders/events')
  expect(page.events).toMatchObject([{ type: 'made', data: { n: 1 } }])
  expect(receiver.requests).toEqual([])
  expect(ofKind(invocations, 'scheduled').map(({ total }) => total)).toEqual([1])
  const ready = await edge.workerd.fetch(new Request('http://edge/readyz'))
  expect(ready.status).toBe(503)
  expect(await ready.json()).toMatchObject({ ready: false, database: 'ok', delivery: 'foreign_environment' })
}, 90_000)

it('publishes with one round trip, and drains ten events of a webhook with four', async () => {
  receiver.answer({})
  const edge = await site()
  await createWebhook(edge, 'orders')
  const events = Array.from({ length: 10 }, (_, n) => ({ type: 'made', data: { n } }))
  const counted = await countServerStatements(edge.databaseUrl)
  await counted?.reset()
  await edge.call('POST', '/v1/streams/orders/events', events)
  await receiver.waitFor(10)
  const [, published] = await edge.settled()
  expect(edge.statements(published!)).toBe(1 + 4)
  expect(published!.total).toBe(1 + 4 + 10)
  // and as the server counts them, but for what the gateway does to a session between two requests
  const atServer = (await counted?.read())?.filter(({ query }) => !/^discard all/i.test(query))
  if (atServer !== undefined) expect(atServer.map(({ calls }) => calls).sort()).toEqual([1, 1, 1, 2])
  await vi.waitFor(async () => {
    const [webhook] = (await edge.call('GET', '/v1/webhooks')).webhooks as { lag: number }[]
    expect(webhook).toMatchObject({ lag: 0 })
  })
}, 90_000)
