import { afterAll, beforeAll, describe } from 'vitest'
import { accessSuite } from './access.ts'
import { conforming } from './conformance.ts'
import { consumerSuite } from './consumers.ts'
import { fidelitySuite } from './fidelity.ts'
import { keySuite } from './keys.ts'
import { lockSuite } from './locks.ts'
import { publishSuite } from './publish.ts'
import { queueSuite } from './queues.ts'
import { readSuite } from './read.ts'
import { scheduleSuite } from './schedules.ts'
import { streamSuite } from './streams.ts'
import { createApi, type HttpTarget } from './target.ts'
import { webhookActionSuite } from './webhook-actions.ts'
import { webhookSuite } from './webhooks.ts'

/**
 * What the HTTP API does, over nothing but `fetch`: the same tests run against the app in Node, over
 * each driver, and in workerd. Each answer is also held against the OpenAPI document. The target is made once; it
 * must take public https webhook URLs only, seal secrets under a key, and deliver nothing by itself.
 */
export function httpSuite(name: string, makeTarget: () => Promise<HttpTarget>): void {
  describe(name, () => {
    let target: HttpTarget | undefined
    beforeAll(async () => {
      target = conforming(await makeTarget())
    })
    afterAll(() => target?.close())
    const api = createApi(() => {
      if (target === undefined) throw new Error('the target is made in beforeAll')
      return target
    })
    accessSuite(api)
    keySuite(api)
    publishSuite(api)
    fidelitySuite(api)
    readSuite(api)
    streamSuite(api)
    consumerSuite(api)
    webhookSuite(api)
    webhookActionSuite(api)
    queueSuite(api)
    lockSuite(api)
    scheduleSuite(api)
  })
}
