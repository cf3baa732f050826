import type { Clock, TimerHandle } from '../../src/ports.ts'

/** A clock that stands still until a test drives it. */
export interface DrivenClock extends Clock {
  /**
   * Moves time on by `ms` and runs what falls due on the way, each timer at its
   * own time and with the promises it settled run to their end before the next.
   */
  advance(ms: number): Promise<void>
  /** How many timers wait. */
  pending(): number
  /** The milliseconds until the next timer; `undefined` with none. */
  nextIn(): number | undefined
  /** Resolves as soon as at least `count` timers wait. */
  waitForTimers(count: number): Promise<void>
}

interface Timer {
  due: number
  fn: () => void
}

/** @param start the first `now()`, in ms since 1970; default 2026-01-01T00:00:00Z */
export function createDrivenClock(start = Date.UTC(2026, 0, 1)): DrivenClock {
  let time = start
  const timers = new Set<Timer>()
  const watchers = new Set<() => void>()

  /** The earliest one; of equals the one that was set first. */
  function next(): Timer | undefined {
    let earliest: Timer | undefined
    for (const timer of timers) if (earliest === undefined || timer.due < earliest.due) earliest = timer
    return earliest
  }

  return {
    now: () => time,
    setTimeout(fn, ms) {
      const timer: Timer = { due: time + Math.max(0, ms), fn }
      timers.add(timer)
      for (const watcher of watchers) watcher()
      return timer
    },
    clearTimeout(handle: TimerHandle) {
      timers.delete(handle as Timer)
    },
    async advance(ms) {
      const end = time + ms
      for (let timer = next(); timer !== undefined && timer.due <= end; timer = next()) {
        timers.delete(timer)
        time = Math.max(time, timer.due)
        timer.fn()
        await settled()
      }
      time = end
      await settled()
    },
    pending: () => timers.size,
    nextIn() {
      const timer = next()
      return timer === undefined ? undefined : Math.max(0, timer.due - time)
    },
    waitForTimers(count) {
      return new Promise((resolve) => {
        const watcher = (): void => {
          if (timers.size < count) return
          watchers.delete(watcher)
          resolve()
        }
        watchers.add(watcher)
        watcher()
      })
    },
  }
}

/** All microtasks have run once a macrotask comes round. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
