import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { startDev } from '../../src/node/run-dev.ts'
import { readSettings } from '../../src/settings.ts'
import { createSystemPorts, systemClock } from '../../src/system-ports.ts'
import { createWorld, type World } from '../delivery/support/world.ts'

const rootKey = 'Root-key-0123456789'

let world: World
beforeEach(async () => {
  world = await createWorld()
})
afterEach(() => world.close())

it('ends open streams and answers long polls when it stops, instead of cutting them', async () => {
  const given = { DATABASE_URL: world.url, MILLRACE_ROOT_KEY: rootKey, PORT: '0' }
  const env = { ...given, MILLRACE_ENCRYPTION_KEY: `mr_enc_${'A'.repeat(43)}` }
  const ports = { ...createSystemPorts(), clock: { ...systemClock } }
  const waits = vi.spyOn(ports.clock, 'setTimeout')
  const dev = await startDev({ settings: readSettings(env), ports, say: () => {} })
  world.onClose(() => dev.stop())
  const get = (query: string, accept = 'application/json'): Promise<Response> =>
    fetch(`http://127.0.0.1:${dev.port}/v1/streams/orders/events${query}`, {
      headers: { authorization: `Bearer ${rootKey}`, accept },
    })
  const stream = await get('', 'text/event-stream')
  const body = stream.text()
  const poll = get('?wait=30')
  // the poll's own: it has come in
  await vi.waitFor(() => expect(waits.mock.calls.map(([, ms]) => ms)).toContain(30_000), 20_000)
  await dev.stop()
  expect(stream.status).toBe(200)
  expect(await body).not.toContain('event: error')
  expect(await (await poll).json()).toMatchObject({ events: [], next: 0 })
}, 60_000)
