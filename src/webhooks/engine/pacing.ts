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
  const gapMs = rateLimit === null ? 0 : 1000 / rateLimit
  let nextAt = 0
  let failures = 0

  return {
    concurrency: () => (failures >= probeAfterFailures ? 1 : maxConcurrency),
    waitMs: () => (gapMs === 0 ? 0 : Math.max(0, Math.ceil(nextAt - clock.now()))),
    sent() {
      if (gapMs > 0) nextAt = Math.max(nextAt, clock.now() - gapMs) + gapMs
    },
    outcome(delivered) {
      failures = delivered ? 0 : failures + 1
    },
  }
}
