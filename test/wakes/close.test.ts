import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createPacer } from '../../src/wakes/poll-timer.ts'
import { createDrivenClock } from '../support/clock.ts'
import { createHarness, eventually, soon, type Harness } from './support/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await createHarness()
})
afterEach(() => harness.close())

/** How many sockets, or timers, keep this process alive. */
function alive(kind: 'sockets' | 'timers'): number {
  const pattern = kind === 'sockets' ? /TCPSocket|TCPConnect/ : /Timeout/
  return process.getActiveResourcesInfo().filter((name) => pattern.test(name)).length
}

describe('the close of a forwarder', () => {
  it('ends listeners, subscriptions, waits and the session, and leaves no socket and no timer', async () => {
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({ ports: { ...harness.ports, clock }, heartbeatMs: 1000 })
    await harness.outside.query('select 1')
    const before = { sockets: alive('sockets'), timers: alive('timers') }
    const aborter = new AbortController()
    const listener = forwarder.listen('c', { signal: aborter.signal })
    const wake = forwarder.subscribeWakes('all', { signal: aborter.signal })
    forwarder.start()
    await soon(forwarder.waitFor('listening'), 'listening')
    wake.take()
    const pacer = createPacer({ ports: { clock, random: () => 0 }, modes: forwarder })
    const waits = Promise.all([
      wake.wait({ timeoutMs: 5000 }),
      pacer.wait({ wake, dueAt: clock.now() + 9000 }),
    ])
    const read = listener.next()

    await soon(forwarder.close(), 'the close')
    expect(forwarder.mode).toBe('closed')
    expect((await soon(read, 'the end')).done).toBe(true)
    expect(await soon(waits, 'the waits')).toEqual(['aborted', 'aborted'])
    expect(clock.pending()).toBe(0)
    await eventually(async () => expect(await harness.sessions()).toBe(0))
    await eventually(() => expect(harness.proxy.connections()).toBe(0))
    await eventually(() => expect(alive('sockets')).toBeLessThanOrEqual(before.sockets))
    expect(alive('timers')).toBeLessThanOrEqual(before.timers)
  })

  it('gives up a connect in flight, and waits for its end', async () => {
    harness.proxy.blackhole()
    const before = alive('sockets')
    let inFlight = 0
    let told: AbortSignal | undefined
    const forwarder = harness.forwarder({
      connect: async (signal) => {
        inFlight += 1
        told = signal
        try {
          return await harness.connect(signal)
        } finally {
          inFlight -= 1
        }
      },
    })
    forwarder.start()
    await harness.proxy.waitForAccepted(1)
    expect(inFlight).toBe(1)
    const closed = forwarder.close()
    expect(inFlight).toBe(1)
    await soon(
      eventually(() => expect(told?.aborted).toBe(true)),
      'the abort',
    )
    await soon(closed, 'the close')
    expect(inFlight).toBe(0)
    // what is left is the proxy's end, which has not heard of it
    await eventually(() => expect(alive('sockets') - harness.proxy.connections()).toBeLessThanOrEqual(before))
  })

  it('closes a connection that comes although its attempt was given up', async () => {
    let arrive = (): void => {}
    const forwarder = harness.forwarder({
      connect: async (signal) => {
        await new Promise<void>((resolve) => (arrive = resolve))
        expect(signal.aborted).toBe(true)
        return harness.connect(new AbortController().signal)
      },
    })
    forwarder.start()
    const closed = forwarder.close()
    await Promise.resolve().then(() => arrive())
    await soon(closed, 'the close')
    expect(harness.connections).toHaveLength(1)
    await eventually(async () => expect(await harness.sessions()).toBe(0))
  })

  it('does not wait for the time of the next attempt', async () => {
    const clock = createDrivenClock()
    const forwarder = harness.forwarder({
      ports: { ...harness.ports, clock },
      connect: () => Promise.reject(new Error('nobody there')),
    })
    forwarder.start()
    await soon(forwarder.waitFor('degraded'), 'degraded')
    await clock.waitForTimers(1)
    await soon(forwarder.close(), 'the close')
    expect(clock.pending()).toBe(0)
  })

  it('does not wait for a server that has fallen silent', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    await soon(forwarder.waitFor('listening'), 'listening')
    harness.proxy.blackhole()
    await soon(forwarder.close(), 'the close')
    expect(forwarder.mode).toBe('closed')
  })

  it('is the last word: closing again waits for the same, everything else is refused', async () => {
    const forwarder = harness.forwarder()
    forwarder.start()
    const waiting = forwarder.waitFor('polling')
    const closes = [forwarder.close(), forwarder.close()]
    await soon(Promise.all(closes), 'both')
    const closed = expect.objectContaining({ code: 'STORE_CLOSED' })
    await expect(waiting).rejects.toEqual(closed)
    expect(() => forwarder.start()).toThrow(closed)
    expect(() => forwarder.listen('c')).toThrow(closed)
    expect(() => forwarder.subscribeWakes('all')).toThrow(closed)
    await forwarder.waitFor('closed')
  })

  it('is fine without a start', async () => {
    const forwarder = harness.forwarder()
    const listener = forwarder.listen('c')
    await soon(forwarder.close(), 'the close')
    expect((await listener.next()).done).toBe(true)
    await expect(listener.ready).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})
