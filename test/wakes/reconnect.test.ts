import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { WakeMode } from '../../src/wakes/modes.ts'
import { createDrivenClock } from '../support/clock.ts'
import { createHarness, eventually, notification, soon, take, type Harness } from './support/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await createHarness()
})
afterEach(() => harness.close())

async function send(channel: string, payload: string): Promise<void> {
  await harness.outside.query('select pg_catalog.pg_notify($1, $2)', [channel, payload])
}

describe('a lost connection', () => {
  it('N2: is made again, also when the first attempts are refused, and every listener is told', async () => {
    const forwarder = harness.forwarder()
    const modes: WakeMode[] = []
    forwarder.onMode((mode) => modes.push(mode))
    const listeners = ['a', 'a', 'b', 'c'].map((channel) => forwarder.listen(channel))
    forwarder.start()
    await forwarder.waitFor('listening')
    const reads = listeners.map((listener) => take(listener, 2))

    harness.proxy.refuse()
    const before = harness.proxy.accepted()
    await harness.proxy.waitForAccepted(before + 2)
    expect(forwarder.mode).toBe('degraded')
    expect(forwarder.lastError).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    await send('a', 'in the gap')
    harness.proxy.heal()
    await soon(forwarder.waitFor('listening'), 'listening')

    for (const channel of ['a', 'b', 'c']) await send(channel, 'after')
    const values = await soon(Promise.all(reads), 'values')
    expect(values).toEqual(
      listeners.map(({ channel }) => [{ kind: 'reconnected' }, notification(channel, 'after')]),
    )
    expect(modes).toEqual(['listening', 'degraded', 'listening'])
    expect(forwarder.lastError).toBeUndefined()
  })

  it('N2: tells of it only when the LISTENs stand: what is sent from then on arrives', async () => {
    const forwarder = harness.forwarder()
    const listener = forwarder.listen('c')
    forwarder.start()
    await forwarder.waitFor('listening')
    for (let round = 0; round < 5; round++) {
      expect(await harness.terminate()).toBeGreaterThan(0)
      expect(await take(listener, 1)).toEqual([{ kind: 'reconnected' }])
      await send('c', `round ${round}`)
      expect(await take(listener, 1)).toEqual([notification('c', `round ${round}`)])
    }
  })

  it('S7: raises every flag, since a wake may have been missed', async () => {
    const forwarder = harness.forwarder()
    const wakes = (['s1', 's2', 'q1'] as const).map((subject) => forwarder.subscribeWakes([subject]))
    forwarder.start()
    await forwarder.waitFor('listening')
    for (const wake of wakes) wake.take()
    await harness.terminate()
    for (const wake of wakes) expect(await soon(wake.wait(), 'a wake')).toBe('wake')
    expect(forwarder.mode).toBe('listening')
  })

  it('does not disturb who listens from the gap on', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    harness.proxy.refuse()
    await soon(forwarder.waitFor('degraded'), 'degraded')
    const listener = forwarder.listen('late')
    harness.proxy.heal()
    await soon(listener.ready, 'ready')
    expect(await take(listener, 1)).toEqual([{ kind: 'reconnected' }])
    await send('late', 'x')
    expect(await take(listener, 1)).toEqual([notification('late', 'x')])
  })

  it('proves itself from its own session the second time, not with another connection', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await forwarder.waitFor('listening')
    expect(harness.connections).toHaveLength(2)
    await harness.terminate()
    await soon(forwarder.waitFor('degraded'), 'degraded')
    await soon(forwarder.waitFor('listening'), 'listening')
    expect(harness.connections).toHaveLength(3)
  })
})

describe('a half-open connection', () => {
  it('is noticed by the heartbeat within 30 s, though no reset ever comes', async () => {
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({ heartbeatMs: 15_000, ports: { ...harness.ports, clock } })
    const listener = forwarder.listen('c')
    forwarder.start()
    await soon(forwarder.waitFor('listening'), 'listening')
    const from = clock.now()
    harness.proxy.blackhole()
    while (forwarder.mode === 'listening' && clock.now() - from < 60_000) await clock.advance(500)
    expect(clock.now() - from).toBeLessThanOrEqual(30_000)
    expect(forwarder.mode).toBe('degraded')

    harness.proxy.heal()
    await soon(clock.waitForTimers(1), 'the wait before the next attempt')
    await clock.advance(2000)
    await soon(forwarder.waitFor('listening'), 'listening')
    expect(await take(listener, 1)).toEqual([{ kind: 'reconnected' }])
  })

  it('keeps a healthy connection through many heartbeats', async () => {
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({ heartbeatMs: 15_000, ports: { ...harness.ports, clock } })
    forwarder.start()
    await soon(forwarder.waitFor('listening'), 'listening')
    for (let beat = 0; beat < 10; beat++) {
      // the one timer is the heart's; while a beat is on its way it is the bound of the answer
      await eventually(() => expect(clock.nextIn()).toBe(15_000))
      await clock.advance(15_000)
    }
    expect(forwarder.mode).toBe('listening')
    expect(harness.proxy.accepted()).toBe(2)
  })

  it('spends no SQL on an idle connection unless asked to', async () => {
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({ ports: { ...harness.ports, clock } })
    forwarder.start()
    await soon(forwarder.waitFor('listening'), 'listening')
    expect(clock.pending()).toBe(0)
  })

  it('is given up while it connects, too', async () => {
    const clock = createDrivenClock()
    harness.proxy.blackhole()
    const forwarder = harness.forwarder({ ports: { ...harness.ports, clock } })
    forwarder.start()
    await harness.proxy.waitForAccepted(1)
    await clock.advance(15_000)
    await soon(forwarder.waitFor('degraded'), 'degraded')
    expect(forwarder.lastError).toMatchObject({ code: 'DATABASE_UNAVAILABLE' })
    harness.proxy.heal()
    await soon(clock.waitForTimers(1), 'the wait before the next attempt')
    await clock.advance(50)
    await soon(forwarder.waitFor('listening'), 'listening')
  })
})

describe('the attempts to connect', () => {
  it('come at doubling intervals while nobody answers, and at short ones after 30 s up', async () => {
    const clock = createDrivenClock()
    let reachable = false
    const attempts: number[] = []
    const forwarder = harness.forwarder({
      ports: { ...harness.ports, clock, random: () => 0.999_999 },
      connect: (signal) => {
        attempts.push(clock.now())
        return reachable ? harness.connect(signal) : Promise.reject(new Error('nobody there'))
      },
    })
    forwarder.start()
    await soon(forwarder.waitFor('degraded'), 'degraded')
    await clock.advance(9000)
    const gaps = attempts.slice(1).map((at, n) => Math.round(at - attempts[n]!))
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000])

    reachable = true
    await clock.advance(2000)
    await soon(forwarder.waitFor('listening'), 'listening')
    await loseAfter(29_999)
    expect(Math.round(clock.nextIn()!)).toBe(2000)
    await clock.advance(2000)
    await soon(forwarder.waitFor('listening'), 'listening')
    await loseAfter(30_000)
    expect(Math.round(clock.nextIn()!)).toBe(50)

    async function loseAfter(ms: number): Promise<void> {
      await clock.advance(ms)
      await harness.terminate()
      await soon(forwarder.waitFor('degraded'), 'degraded')
      await soon(clock.waitForTimers(1), 'the wait before the next attempt')
    }
  })
})
