import { describe, expect, it } from 'vitest'
import { createModeCell, type WakeMode } from '../../src/wakes/modes.ts'
import { createPacer } from '../../src/wakes/poll-timer.ts'
import { createWakeRegistry } from '../../src/wakes/wake-signals.ts'
import { createDrivenClock } from '../support/clock.ts'

function setUp(mode: WakeMode, random = 0) {
  const clock = createDrivenClock()
  const modes = createModeCell()
  modes.set(mode)
  const registry = createWakeRegistry(clock)
  const wake = registry.subscribe('all')
  const pacer = createPacer({ ports: { clock, random: () => random }, modes })
  return { clock, modes, registry, wake, pacer }
}

/** How long the next waits take, each in clock milliseconds, and why they end. */
async function waits(given: ReturnType<typeof setUp>, count: number): Promise<[number, string][]> {
  const seen: [number, string][] = []
  for (let n = 0; n < count; n++) {
    const from = given.clock.now()
    const ended: string[] = []
    void given.pacer.wait({ wake: given.wake }).then((outcome) => ended.push(outcome))
    while (ended.length === 0 && given.clock.now() - from < 200_000) await given.clock.advance(50)
    seen.push([given.clock.now() - from, String(ended[0])])
  }
  return seen
}

describe('a pacer while wakes arrive', () => {
  it('sets no timer at all with nothing due', async () => {
    const { clock, pacer, wake, registry } = setUp('listening')
    const waiting = pacer.wait({ wake })
    await clock.advance(86_400_000)
    expect(clock.pending()).toBe(0)
    registry.raise('s1')
    expect(await waiting).toBe('wake')
  })

  it('waits for the due time, also when it is months away', async () => {
    const { clock, pacer, wake } = setUp('listening')
    const dueAt = clock.now() + 90 * 86_400_000
    let outcome: string | undefined
    void pacer.wait({ wake, dueAt }).then((result) => (outcome = result))
    // beyond it a real timer fires at once
    expect(clock.nextIn()).toBeLessThan(2 ** 31)
    await clock.advance(90 * 86_400_000 - 1)
    expect(outcome).toBeUndefined()
    await clock.advance(1)
    expect(outcome).toBe('due')
    expect(clock.pending()).toBe(0)
  })

  it('ends at once for what is due, up, or over already', async () => {
    const { clock, pacer, wake, registry } = setUp('listening')
    expect(await pacer.wait({ wake, dueAt: clock.now() })).toBe('due')
    registry.raise('all')
    expect(await pacer.wait({ wake, dueAt: clock.now() })).toBe('wake')
    expect(await pacer.wait({ wake, signal: AbortSignal.abort() })).toBe('aborted')
    wake.close()
    expect(await pacer.wait({ wake })).toBe('aborted')
    expect(clock.pending()).toBe(0)
  })
})

describe.each(['polling', 'degraded', 'starting'] as const)('N4: a pacer in mode %s', (mode) => {
  it('polls after a second, then twice as long each time, up to a minute', async () => {
    const seconds = (await waits(setUp(mode), 8)).map(([ms, why]) => [ms / 1000, why])
    expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((s) => [s, 'poll']))
  })

  it('snaps back to a second on activity', async () => {
    const given = setUp(mode)
    await waits(given, 5)
    given.pacer.active()
    expect(await waits(given, 2)).toEqual([
      [1000, 'poll'],
      [2000, 'poll'],
    ])
  })

  it('comes up to a fifth earlier, by chance', async () => {
    expect(await waits(setUp(mode, 0.999_999), 1)).toEqual([[850, 'poll']])
  })

  it('does not poll past a due time', async () => {
    const { clock, pacer, wake } = setUp(mode)
    const waiting = pacer.wait({ wake, dueAt: clock.now() + 400 })
    await clock.advance(400)
    expect(await waiting).toBe('due')
    expect(clock.pending()).toBe(0)
  })
})

describe('a change of mode during a wait', () => {
  it('begins to poll when the wakes stop', async () => {
    const { clock, pacer, wake, modes } = setUp('listening')
    const waiting = pacer.wait({ wake })
    await clock.advance(3_600_000)
    modes.set('degraded')
    expect(clock.pending()).toBe(1)
    await clock.advance(1000)
    expect(await waiting).toBe('poll')
  })

  it('stops polling when the wakes come', async () => {
    const { clock, pacer, wake, modes } = setUp('degraded')
    const aborter = new AbortController()
    const waiting = pacer.wait({ wake, signal: aborter.signal })
    await clock.advance(500)
    modes.set('listening')
    expect(clock.pending()).toBe(0)
    aborter.abort()
    expect(await waiting).toBe('aborted')
  })

  it('ends the wait when the forwarder is closed', async () => {
    const { clock, pacer, wake, modes } = setUp('polling')
    const waiting = pacer.wait({ wake })
    modes.set('closed')
    expect(await waiting).toBe('aborted')
    expect(clock.pending()).toBe(0)
  })
})
