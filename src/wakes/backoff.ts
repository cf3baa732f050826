import type { Ports } from '../ports.ts'

/** How fast a lost connection is tried again. */
export interface BackoffOptions {
  /** The first wait, at most. Default 50. */
  minMs: number
  /** No wait is longer. Default 2000. */
  maxMs: number
  /** A connection must have stood this long for the waits to begin at `minMs` again. Default 30000. */
  resetAfterMs: number
}

/** Defaults: quick after a restart, gentle to a server that is down or refuses everyone. */
export const defaultBackoff: BackoffOptions = { minMs: 50, maxMs: 2000, resetAfterMs: 30_000 }

/** Doubling waits with jitter. */
export interface Backoff {
  /** How long to wait before the next attempt: 50 to 100 % of a bound that doubles each time. */
  next(): number
  /** Tells how long a connection stood that is lost now; one that dies young resets nothing. */
  stood(ms: number): void
}

export function createBackoff(options: BackoffOptions, random: Ports['random']): Backoff {
  let bound = options.minMs
  return {
    next() {
      const current = bound
      bound = Math.min(bound * 2, options.maxMs)
      return current * (0.5 + random() / 2)
    },
    stood(ms) {
      if (ms >= options.resetAfterMs) bound = options.minMs
    },
  }
}
