import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createWorld, type World } from '../delivery/support/world.ts'
import { startForwarderProcess } from '../delivery/support/forwarder-process.ts'
import { run } from '../cli/support/run.ts'

const secret = 'a-secret-of-both-ends-0123456789'
const rootKey = 'Root-key-0123456789'
const patience = { timeout: 40_000, interval: 50 }

describe('millrace forward, and millrace ring beside it', () => {
  let world: World
  beforeEach(async () => {
    world = await createWorld()
  })
  afterEach(() => world.close())

  async function sessions(): Promise<number> {
    const [row] = await world.sql<{ n: number }>(
      `select count(*)::integer as n from pg_catalog.pg_stat_activity
       where datname = current_database() and application_name = 'millrace forwarder'`,
    )
    return row!.n
  }

  it('sleeps without a session, wakes by a ring, delivers, says how it is, and stops at once', async () => {
    await world.webhook()
    const child = startForwarderProcess(world.url, {
      MILLRACE_SLEEP: '1',
      MILLRACE_SLEEP_AFTER_MS: '500',
      MILLRACE_DOORBELL_SECRET: secret,
      MILLRACE_DOORBELL_PORT: '0',
      MILLRACE_ROOT_KEY: rootKey,
    })
    world.onClose(() => child.kill())
    await child.ready()
    const port = /"port":(\d+)/.exec(child.output())![1]
    const url = `http://127.0.0.1:${port}`
    const readyz = async () => (await fetch(`${url}/readyz`)).json()
    await vi.waitFor(
      async () => expect(await readyz()).toMatchObject({ mode: 'sleeping', ready: true }),
      patience,
    )
    // housekeeping comes a minute after the start, and is let come: until then nothing is held on to
    await vi.waitFor(async () => expect(await sessions()).toBe(0), patience)
    const [offset] = await world.publish(['a'])
    expect(world.receiver.requests).toHaveLength(0)

    const env = { MILLRACE_DOORBELL_URL: url, MILLRACE_DOORBELL_SECRET: secret, NO_COLOR: '1' }
    const rung = await run(['ring'], { env })
    expect(rung).toEqual({
      code: 0,
      out: `✓ rang ${url}/doorbell: it was sleeping, and wakes up\n`,
      err: '',
    })
    await world.receiver.waitFor(1, 20_000)
    expect(String(world.receiver.requests[0]!.headers['webhook-id'])).toMatch(new RegExp(`_${offset}$`))

    const wrong = await run(['ring'], { env: { ...env, MILLRACE_DOORBELL_SECRET: `${secret}x` } })
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('answered 401')])
    expect((await fetch(`${url}/doorbell`, { method: 'POST' })).status).toBe(401)
    expect((await fetch(`${url}/doorbell`)).status).toBe(405)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
    const authorization = `Bearer ${rootKey}`
    const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization } })).text()
    expect(metrics).toMatch(/millrace_wake_mode\{mode="\w+"\} 1/)
    expect(metrics).toContain('millrace_attempts_total{outcome="delivered"} 1')
    // the connections that fetch keeps open do not hold it up
    const since = Date.now()
    expect(await child.stop()).toBe(0)
    expect(Date.now() - since).toBeLessThan(7_000)
  }, 180_000)
})

describe('millrace ring', () => {
  it.each([
    [{}, 'MILLRACE_DOORBELL_SECRET is not set (INVALID_SETTING)'],
    [{ MILLRACE_DOORBELL_SECRET: 'short' }, 'MILLRACE_DOORBELL_SECRET must have 24 to 256 printable ASCII'],
    [
      { MILLRACE_DOORBELL_SECRET: `${secret} x` },
      'MILLRACE_DOORBELL_SECRET must have 24 to 256 printable ASCII',
    ],
    [
      { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'ftp://a' },
      'MILLRACE_DOORBELL_URL must be an http',
    ],
    [
      { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'http://u:p@a' },
      'must not hold a user or password',
    ],
    [
      { MILLRACE_DOORBELL_SECRET: secret, MILLRACE_DOORBELL_URL: 'http://127.0.0.1:9' },
      'nobody answers at http://127.0.0.1:9/doorbell: does the forwarder run',
    ],
  ])('with %j says what is wrong', async (env, problem) => {
    const { code, err, out } = await run(['ring'], { env })
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(problem)
    expect(err.trim().split('\n')).toHaveLength(1)
    expect(err).not.toContain(secret)
  })
})
