import type { Ports } from '../../ports.ts'

/** Short enough not to be noticed after one lost packet. */
const firstMs = 100
/** Long enough not to hammer a database that is down. */
const longestMs = 5000

/** Doubling waits after errors: 100 ms to 5 s, half of each drawn by lot. */
export function createErrorBackoff(random: Ports['random']): { next(): number; reset(): void } {
  let bound = firstMs
  return {
    next() {
      const wait = bound * (0.5 + random() / 2)
      bound = Math.min(bound * 2, longestMs)
      return wait
    },
    reset() {
      bound = firstMs
    },
  }
}
