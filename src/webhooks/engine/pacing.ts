import type { Clock } from '../../ports.ts'

/** How fast one webhook may be sent to. */
export interface Pacing {
  /** How many sends may run at once now. */
  concurrency(): number
  /** Milliseconds until the rate limit lets the next send pass; 0: now. */
  waitMs(): number
  sent(): void
  outcome(delivered: boolean): void
}

/** After so many failures on end it is the endpoint that fails, not an event: it is only probed. */
const probeAfterFailures = 10

/** @param rateLimit requests per second; null: no limit */
export function createPacing(clock: Clock, rateLimit: number | null, maxConcurrency: number): Pacing {
  return new Pace(clock, rateLimit, maxConcurrency)
}

class Pace implements Pacing {
  readonly #clock: Clock
  readonly #gapMs: number
  readonly #maxConcurrency: number
  #nextAt = 0
  #failures = 0

  constructor(clock: Clock, rateLimit: number | null, maxConcurrency: number) {
    this.#clock = clock
    this.#gapMs = rateLimit === null ? 0 : 1000 / rateLimit
    this.#maxConcurrency = maxConcurrency
  }

  concurrency(): number {
    return this.#failures >= probeAfterFailures ? 1 : this.#maxConcurrency
  }

  waitMs(): number {
    return this.#gapMs === 0 ? 0 : Math.max(0, Math.ceil(this.#nextAt - this.#clock.now()))
  }

  sent(): void {
    if (this.#gapMs === 0) return
    this.#nextAt = Math.max(this.#nextAt, this.#clock.now() - this.#gapMs) + this.#gapMs
  }

  outcome(delivered: boolean): void {
    this.#failures = delivered ? 0 : this.#failures + 1
  }
}
