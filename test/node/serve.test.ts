import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { run, start } from '../cli/support/run.ts'
import { createWorld, type World } from '../delivery/support/world.ts'

const rootKey = 'Root-key-0123456789'
const patience = { timeout: 40_000, interval: 50 }

describe('millrace serve', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  function serve(args: string[], env: Record<string, string> = {}) {
    const own = { DATABASE_URL: world.url, MILLRACE_ROOT_KEY: rootKey, MILLRACE_ALLOW_INSECURE_TARGETS: '1' }
    const given = ['serve', '--port', '0', '--host', '127.0.0.1', ...args]
    const command = start(given, { env: { ...own, ...env } })
    world.onClose(async () => {
      command.interrupt()
      await command.done
    })
    const call = async (path: string, body?: unknown): Promise<Response> => {
      const port = /"port":(\d+)/.exec(command.out())![1]
      const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
      return fetch(`http://127.0.0.1:${port}${path}`, init)
    }
    return { command, call }
  }

  it('with --deliver does all in one process, and hears its own publishes while its database sleeps', async () => {
    const { command, call } = serve(['--deliver'], { MILLRACE_SLEEP: '1', MILLRACE_SLEEP_AFTER_MS: '300' })
    await command.until((out) => out.includes('"serving"'))
    const sleeping = () =>
      vi.waitFor(async () => {
        expect(await (await call('/readyz')).json()).toMatchObject({ ready: true, mode: 'sleeping' })
      }, patience)
    await sleeping()
    const webhook = { stream: 's', url: `${world.receiver.url}/` }
    expect((await call('/v1/webhooks', webhook)).status).toBe(201)
    await sleeping()
    expect((await call('/v1/streams/s/events', { type: 'made', data: 1 })).status).toBe(201)
    await world.receiver.waitFor(1, 20_000)
    command.interrupt()
    expect([await command.done, command.err()]).toEqual([0, ''])
    expect(command.out()).toContain('"stopping"')
  }, 120_000)

  it('without it only answers', async () => {
    await world.webhook()
    const { command, call } = serve([])
    await command.until((out) => out.includes('"serving"'))
    expect((await call('/v1/streams/orders/events', { type: 'made', data: 1 })).status).toBe(201)
    command.interrupt()
    expect(await command.done).toBe(0)
    expect(world.receiver.requests).toEqual([])
    expect(await world.sql('select from millrace.webhooks where lease_fence > 0')).toEqual([])
  }, 120_000)

  it.each([
    [{}, 'DATABASE_URL is not set'],
    [{ DATABASE_URL: 'postgres://127.0.0.1:9/x' }, 'MILLRACE_ROOT_KEY is not set'],
    [{ MILLRACE_LOG_LEVEL: 'loud' }, 'MILLRACE_LOG_LEVEL must be one of: debug, info, warn, error'],
  ])('with %j says what is missing', async (env, problem) => {
    const { code, err } = await run(['serve'], { env })
    expect([code, err]).toEqual([1, expect.stringContaining(problem)])
  })
})
