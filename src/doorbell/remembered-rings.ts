/** Remembers which rings have come, so that none counts twice, in bounded memory. */
export interface RememberedRings {
  /**
   * Notes a ring whose signature holds.
   *
   * @param timestamp its own, in seconds since 1970
   * @param now in seconds since 1970
   * @returns whether it is new
   */
  take(id: string, timestamp: number, now: number): boolean
  /** How many are remembered. */
  readonly size: number
}

/**
 * What is older than the tolerance is refused by its age, so only younger ones need to be remembered. When
 * there are too many of them, the older half is forgotten, and everything as old as that is refused: a ring
 * that is refused costs a delay, one that is taken twice would be a replay.
 *
 * @param options.toleranceS how old a ring may be, in seconds
 * @param options.most how many are remembered at once
 */
export function createRememberedRings(options: { toleranceS: number; most: number }): RememberedRings {
  const { toleranceS, most } = options
  const timestamps = new Map<string, number>()
  let refusedThrough = -Infinity

  function makeRoom(now: number): void {
    for (const [id, timestamp] of timestamps) if (timestamp < now - toleranceS) timestamps.delete(id)
    if (timestamps.size < most) return
    const sorted = [...timestamps.values()].sort((a, b) => a - b)
    refusedThrough = Math.max(refusedThrough, sorted[Math.floor((sorted.length - 1) / 2)]!)
    for (const [id, timestamp] of timestamps) if (timestamp <= refusedThrough) timestamps.delete(id)
  }

  return {
    take(id, timestamp, now) {
      if (timestamp <= refusedThrough || timestamps.has(id)) return false
      if (timestamps.size >= most) makeRoom(now)
      if (timestamp <= refusedThrough) return false
      timestamps.set(id, timestamp)
      return true
    },
    get size() {
      return timestamps.size
    },
  }
}
