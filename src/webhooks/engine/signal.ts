import type { Clock } from '../../ports.ts'

/** A sticky "look again": fired while nobody waits, it lets the next wait pass at once. */
export interface Signal {
  fire(): void
  /** Resolves with true when fired, with false after `timeoutMs`, if given. One waiter at a time. */
  wait(timeoutMs?: number): Promise<boolean>
}

export function createSignal(clock: Clock): Signal {
  return new StickySignal(clock)
}

class StickySignal implements Signal {
  readonly #clock: Clock
  #fired = false
  #waiter: ((byFire: boolean) => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  fire(): void {
    if (this.#waiter === null) this.#fired = true
    else this.#waiter(true)
  }

  wait(timeoutMs?: number): Promise<boolean> {
    if (this.#fired) {
      this.#fired = false
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const timer =
        timeoutMs === undefined ? null : this.#clock.setTimeout(() => this.#waiter?.(false), timeoutMs)
      this.#waiter = (byFire) => {
        this.#waiter = null
        if (timer !== null) this.#clock.clearTimeout(timer)
        resolve(byFire)
      }
    })
  }
}
