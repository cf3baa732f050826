import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createWorld, offsetOf, type World } from './support/world.ts'

describe('delivery', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  it('delivers what is published (W1)', async () => {
    await world.webhook()
    world.start()
    const offsets = await world.publish(Array.from({ length: 300 }, (_, n) => `k${n % 7}`))
    await world.receiver.waitFor(300, 20_000)
    expect(world.receiver.requests.map(offsetOf).toSorted((a, b) => a - b)).toEqual(offsets)
    await world.until<{ offset: string }>(
      'select "offset"::text from millrace.webhooks',
      ([row]) => Number(row?.offset) === offsets.at(-1),
    )
  })
})
