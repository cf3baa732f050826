import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDeadlines } from '../../src/webhooks/node-deadlines.ts'

describe('deadlines', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  it('pass each at its own time, the cleared ones never, with one timer for those of one length', () => {
    const deadlines = createDeadlines(() => performance.now())
    const passed: string[] = []
    const start = (name: string, ms: number) =>
      deadlines.start(ms, () => passed.push(`${name} ${performance.now()}`))
    const from = performance.now()
    const at = (ms: number): number => from + ms
    start('a', 100)
    vi.advanceTimersByTime(30)
    const cleared = start('b', 100)
    start('c', 100)
    start('short', 20)
    expect(vi.getTimerCount()).toBe(2)
    deadlines.clear(cleared)
    deadlines.clear(cleared)
    vi.advanceTimersByTime(1_000)
    expect(passed).toEqual([`short ${at(50)}`, `a ${at(100)}`, `c ${at(130)}`])
    expect(vi.getTimerCount()).toBe(0)
    start('d', 100)
    vi.advanceTimersByTime(100)
    expect(passed.at(-1)).toBe(`d ${at(1_130)}`)
  })
})
