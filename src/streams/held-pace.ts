/** Soon enough that a rollback is no outage, and doubling, since an open transaction may stay open for long. */
const minMs = 50
const maxMs = 1_000

/**
 * How soon to look again at a stream that a transaction holds back: should it roll back, nobody is woken. When
 * nothing is held back there is nothing to look for.
 */
export interface HeldPace {
  /** What the last read said. */
  saw(page: { held: boolean; events: readonly unknown[] }): void
  /** How long to wait at most; undefined: until a wake. */
  waitMs(): number | undefined
}

export function createHeldPace(): HeldPace {
  let held = false
  let nextMs = minMs
  return {
    saw(page) {
      held = page.held
      if (!held || page.events.length > 0) nextMs = minMs
    },
    waitMs() {
      if (!held) return undefined
      const waitMs = nextMs
      nextMs = Math.min(nextMs * 2, maxMs)
      return waitMs
    },
  }
}
