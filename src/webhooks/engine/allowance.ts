/** How many requests a run may still make, where a platform counts them: statements and sends alike. */
export interface Allowance {
  /** Only what is kept back for the last outcomes is left: nothing new is to be begun. */
  readonly low: boolean
  /** One is about to be made; false: none is left, and it must not be. */
  spend(): boolean
  /** Calls back at once when it gets low. */
  onLow(callback: () => void): void
}

/**
 * Kept back for the end of a run: the flush when it begins to stop, one a second while what is being
 * sent ends, the one that gives the leases back, and one that fails.
 */
const keptBack = 8

/** @param requests all that the run may make; 0 and less: none at all */
export function createAllowance(requests: number): Allowance {
  const callbacks: (() => void)[] = []
  let left = requests
  let low = left <= keptBack

  return {
    get low() {
      return low
    },
    spend() {
      if (left <= 0) return false
      left--
      if (!low && left <= keptBack) {
        low = true
        for (const callback of callbacks) callback()
      }
      return true
    },
    onLow: (callback) => void callbacks.push(callback),
  }
}

/** Where nobody counts. */
export const unlimited: Allowance = { low: false, spend: () => true, onLow() {} }
