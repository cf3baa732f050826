import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWorld, type World } from '../support/world.ts'
import { plans, startChaos, steps } from './chaos.ts'
import { faultsOf } from './check-history.ts'

const long = process.env.MILLRACE_LONG_TESTS === '1'

describe('several engines under kills, outages, thefts of leases, trims and pauses', () => {
  let world: World
  let runs = 0
  beforeAll(async () => {
    world = await createWorld()
  })
  afterAll(() => world.close())

  it(
    'deliver every event or record why not, in the order of its unit (W1, W3, W5)',
    async () => {
      const property = fc.asyncProperty(steps, plans, async (happenings, planned) => {
        const chaos = await startChaos(world, `run${runs++}`, planned)
        try {
          for (const one of happenings) await chaos.take(one)
          await chaos.settle()
          const dead = await world.sql<{ id: string }>(
            `select webhook_id || ' ' || "offset" as id from millrace.deliveries where state = 'dead'`,
          )
          expect(faultsOf(chaos, new Set(dead.map(({ id }) => id)))).toEqual([])
        } finally {
          await chaos.end()
        }
      })
      await fc.assert(property, {
        numRuns: long ? 200 : 8,
        endOnFailure: true,
        interruptAfterTimeLimit: long ? 480_000 : 15_000,
      })
    },
    long ? 700_000 : 90_000,
  )
})
