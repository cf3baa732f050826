import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { expectInOrder, failTwice } from './support/deliveries.ts'
import { startSite, type Site } from './support/site.ts'

let receiver: Receiver
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(() => receiver.close())

const count = 200
const keys = 10
const atOnce = { scheduleMs: [0, 0, 0], jitterPercent: 0, maxAttempts: 3 }

/** Publishes the events one by one, some requests at a time. */
async function publishAll(site: Site, stream: string): Promise<void> {
  let next = 0
  async function publisher(): Promise<void> {
    while (next < count) {
      const n = next++
      await site.call('POST', `/v1/streams/${stream}/events`, {
        type: 'made',
        key: `k${n % keys}`,
        data: { n },
      })
    }
  }
  // one at a time: two would race for the lower offset
  await publisher()
}

const delivered = (path: string, wanted: number): boolean =>
  receiver.requests.filter((request) => request.path === path).length >= wanted

describe('an edge with no forwarder anywhere', () => {
  let site: Site
  beforeAll(async () => {
    site = await startSite()
  })
  afterAll(() => site.close())

  it('W1 W3: delivers everything in order by waitUntil and cron alone, within 50 requests an invocation', async () => {
    failTwice(receiver)
    const stream = 'failing'
    await site.call('POST', '/v1/webhooks', {
      stream,
      url: `${receiver.url}/hook`,
      ordering: 'key',
      ...atOnce,
    })
    await publishAll(site, stream)
    await runCronUntil(site, () => delivered('/hook', count * 3))
    const invocations = await site.settled()
    expectInOrder(receiver.requests, { count, keys, attempts: 3 })
    for (const { total, refused } of invocations) {
      expect(refused).toBe(0)
      expect(total).toBeLessThanOrEqual(50)
    }
  }, 120_000)
})

/** Runs the cron handler, as the platform does each minute, until all is delivered; at most so many times. */
async function runCronUntil(site: Site, done: () => boolean): Promise<number> {
  for (let runs = 0; runs < 100; runs++) {
    if (done()) return runs
    await site.workerd.cron()
  }
  throw new Error(`not delivered after 100 runs: ${receiver.requests.length} requests arrived`)
}
