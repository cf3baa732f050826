/** The middle, and the ends. */
export interface Spread {
  median: number
  low: number
  high: number
}

/** Median, lowest and highest. */
export function spread(values: readonly number[]): Spread {
  return { median: percentile(values, 0.5), low: percentile(values, 0), high: percentile(values, 1) }
}

/** The value at the given share of the way up; the lower of two in the middle. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}
