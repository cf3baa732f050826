import type { Clock } from '../../../src/ports.ts'

export interface ManualClock extends Clock {
  advance(ms: number): Promise<void>
  readonly pending: number
}

export function createManualClock(start = 1_000_000): ManualClock {
  let now = start
  let id = 0
  const timers = new Map<number, { at: number; fn: () => void }>()
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve()
  }
  return {
    now: () => now,
    setTimeout(fn, ms) {
      id += 1
      timers.set(id, { at: now + ms, fn })
      return id
    },
    clearTimeout: (handle) => void timers.delete(handle as number),
    get pending() {
      return timers.size
    },
    async advance(ms) {
      const end = now + ms
      await settle()
      for (;;) {
        const next = [...timers]
          .filter(([, t]) => t.at <= end)
          .sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0]
        if (next === undefined) break
        timers.delete(next[0])
        now = Math.max(now, next[1].at)
        next[1].fn()
        await settle()
      }
      now = end
    },
  }
}
