import { describe, expect, it } from 'vitest'
import { createWakeRegistry, isWakeSubject } from '../../src/wakes/wake-signals.ts'
import { createDrivenClock } from '../support/clock.ts'

describe('a wake signal', () => {
  it('stays up until taken, however many wakes came', async () => {
    const registry = createWakeRegistry(createDrivenClock())
    const wake = registry.subscribe(['s1'])
    for (let n = 0; n < 1000; n++) registry.raise('s1')
    expect(await wake.wait()).toBe('wake')
    expect(wake.take()).toBe(false)
  })

  it('is raised by its own subjects, and by everything', () => {
    const registry = createWakeRegistry(createDrivenClock())
    const [one, two, all] = [
      registry.subscribe(['s1', 'q7']),
      registry.subscribe(['s2']),
      registry.subscribe('all'),
    ]
    registry.raise('q7')
    expect([one.take(), two.take(), all.take()]).toEqual([true, false, true])
    registry.raise('s2')
    expect([one.take(), two.take(), all.take()]).toEqual([false, true, true])
    registry.raise('s17')
    expect([one.take(), two.take(), all.take()]).toEqual([false, false, true])
    registry.raise('all')
    expect([one.take(), two.take(), all.take()]).toEqual([true, true, true])
  })

  it('times out by the clock, and leaves no timer', async () => {
    const clock = createDrivenClock()
    const wake = createWakeRegistry(clock).subscribe('all')
    const waiting = wake.wait({ timeoutMs: 500 })
    await clock.advance(500)
    expect(await waiting).toBe('timeout')
    expect(clock.pending()).toBe(0)
  })

  it('leaves no timer after a wake or an abort', async () => {
    const clock = createDrivenClock()
    const registry = createWakeRegistry(clock)
    const wake = registry.subscribe('all')
    const aborter = new AbortController()
    const waits = [wake.wait({ timeoutMs: 500 }), wake.wait({ timeoutMs: 500, signal: aborter.signal })]
    registry.raise('all')
    aborter.abort()
    expect(await Promise.all(waits)).toEqual(['wake', 'aborted'])
    expect(clock.pending()).toBe(0)
  })

  it('ends with its signal and with the registry, for those who wait and those who come', async () => {
    const registry = createWakeRegistry(createDrivenClock())
    const aborter = new AbortController()
    const byAbort = registry.subscribe(['s1'], { signal: aborter.signal })
    const byClose = registry.subscribe(['s1'])
    const waits = [byAbort.wait(), byClose.wait()]
    aborter.abort()
    registry.close()
    expect(await Promise.all(waits)).toEqual(['aborted', 'aborted'])
    expect(await byClose.wait()).toBe('aborted')
    registry.raise('s1')
    expect([byAbort.take(), byClose.take()]).toEqual([false, false])
  })
})

describe('the payloads of the internal channel', () => {
  it('name a stream or a queue; anything else is not ours', () => {
    expect(['s1', 'q42', 's2147483647'].filter(isWakeSubject)).toHaveLength(3)
    expect(['', 's', 'x1', 's1 ', 's-1', 'S1', 'tff', 's1,s2'].filter(isWakeSubject)).toEqual([])
  })
})
