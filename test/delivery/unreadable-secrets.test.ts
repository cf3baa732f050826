import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { countUnreadable } from '../../src/webhooks/readable-secrets.ts'
import { createSealer, type Sealer } from '../../src/webhooks/seal.ts'
import { createWorld, type World } from './support/world.ts'

const [right, wrong] = ['the key that it was sealed with', 'a key of somebody else']

describe('a webhook whose secret cannot be opened', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  /** Starts a forwarder; returns its errors. */
  function start(sealer: Sealer | null): unknown[] {
    const ports = createSystemPorts()
    const errors: unknown[] = []
    const log = { ...ports.log, error: (fields: unknown) => void errors.push(fields) }
    world.start({ sealer, ports: { ...ports, log } })
    return errors
  }

  it.each([
    ['a wrong key', wrong],
    ['no key', null],
  ])('waits where there is %s, with no attempt counted and no other held up, and goes on', async (_, key) => {
    const sealed = await createWebhook(
      world.db,
      { stream: 'orders', url: `${world.receiver.url}/sealed`, from: 'start', maxAttempts: 1 },
      { sealer: await createSealer({ current: right }), policy: { allowInsecure: true } },
    )
    await world.webhook({ path: '/clear' })
    const sealer = key === null ? null : await createSealer({ current: key })
    const errors = start(sealer)
    for (let n = 1; n <= 3; n++) {
      await world.publish([null])
      await world.receiver.waitFor((all) => all.filter(({ path }) => path === '/clear').length >= n, 20_000)
    }
    expect(errors).toEqual([{ webhookIds: [sealed.id] }])
    expect(await countUnreadable(world.db, sealer?.keyIds ?? [])).toBe(1)
    const [row] = await world.sql('select "offset"::integer, state from millrace.webhooks where id = $1', [
      sealed.id,
    ])
    expect(row).toEqual({ offset: 0, state: 'active' })
    for (const table of ['attempts', 'deliveries'])
      expect(await world.sql(`select from millrace.${table}`)).toEqual([])
    // the right one, even as a previous key
    expect(start(await createSealer({ current: wrong, previous: [right] }))).toEqual([])
    const all = await world.receiver.waitFor(
      (seen) => seen.filter(({ path }) => path === '/sealed').length >= 3,
      20_000,
    )
    expect(
      all.filter(({ path }) => path === '/sealed').map(({ body }) => JSON.parse(body.toString()).data.n),
    ).toEqual([0, 1, 2])
  })
})
