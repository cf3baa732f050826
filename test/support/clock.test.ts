import { describe, expect, it } from 'vitest'
import { createDrivenClock } from './clock.ts'

describe('the driven clock', () => {
  it('runs timers in the order of their times, each at its own', async () => {
    const clock = createDrivenClock(1000)
    const seen: [string, number][] = []
    clock.setTimeout(() => seen.push(['late', clock.now()]), 20)
    clock.setTimeout(() => seen.push(['early', clock.now()]), 10)
    clock.setTimeout(() => seen.push(['early too', clock.now()]), 10)
    await clock.advance(9)
    expect(seen).toEqual([])
    await clock.advance(11)
    expect(seen).toEqual([
      ['early', 1010],
      ['early too', 1010],
      ['late', 1020],
    ])
    expect(clock.now()).toBe(1020)
  })

  it('runs what a timer sets, also behind promises', async () => {
    const clock = createDrivenClock(0)
    const times: number[] = []
    const tick = async (): Promise<void> => {
      times.push(clock.now())
      await Promise.resolve()
      clock.setTimeout(() => void tick(), 10)
    }
    clock.setTimeout(() => void tick(), 10)
    await clock.advance(35)
    expect(times).toEqual([10, 20, 30])
    expect(clock.nextIn()).toBe(5)
  })

  it('forgets cleared timers', async () => {
    const clock = createDrivenClock()
    const handle = clock.setTimeout(() => expect.unreachable(), 10)
    expect(clock.pending()).toBe(1)
    clock.clearTimeout(handle)
    clock.clearTimeout(handle)
    await clock.advance(100)
    expect(clock.pending()).toBe(0)
    expect(clock.nextIn()).toBeUndefined()
  })

  it('tells when a timer has been set', async () => {
    const clock = createDrivenClock()
    const set = clock.waitForTimers(2)
    clock.setTimeout(() => {}, 1)
    clock.setTimeout(() => {}, 1)
    await set
    await clock.waitForTimers(1)
  })
})
