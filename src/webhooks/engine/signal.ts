import type { Clock } from '../../ports.ts'

/** A sticky "look again": fired while nobody waits, it lets the next wait pass at once. */
export interface Signal {
  fire(): void
  /** Resolves with true when fired, with false after `timeoutMs`, if given. One waiter at a time. */
  wait(timeoutMs?: number): Promise<boolean>
}

export function createSignal(clock: Clock): Signal {
  let fired = false
  let waiter: ((byFire: boolean) => void) | null = null

  return {
    fire() {
      if (waiter === null) fired = true
      else waiter(true)
    },
    wait(timeoutMs) {
      if (fired) {
        fired = false
        return Promise.resolve(true)
      }
      return new Promise((resolve) => {
        const timer = timeoutMs === undefined ? null : clock.setTimeout(() => waiter?.(false), timeoutMs)
        waiter = (byFire) => {
          waiter = null
          if (timer !== null) clock.clearTimeout(timer)
          resolve(byFire)
        }
      })
    },
  }
}
