import type { Clock, TimerHandle } from '../../ports.ts'

/** One timer: of several wishes the earliest counts. */
export interface Alarm {
  ring(inMs: number): void
  cancel(): void
}

export function createAlarm(clock: Clock, onRing: () => void): Alarm {
  return new ClockAlarm(clock, onRing)
}

class ClockAlarm implements Alarm {
  readonly #clock: Clock
  readonly #onRing: () => void
  #timer: TimerHandle | null = null
  #dueAt = Infinity

  constructor(clock: Clock, onRing: () => void) {
    this.#clock = clock
    this.#onRing = onRing
  }

  ring(inMs: number): void {
    const at = this.#clock.now() + inMs
    if (at >= this.#dueAt) return
    this.cancel()
    this.#dueAt = at
    this.#timer = this.#clock.setTimeout(() => {
      this.cancel()
      this.#onRing()
    }, inMs)
  }

  cancel(): void {
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer)
    this.#timer = null
    this.#dueAt = Infinity
  }
}
