import type { CatchUp } from './schedule.ts'
import { newestBoundaries, nextBoundary, type ValidTiming } from './timing.ts'

/** At most so many boundaries of a schedule are caught up at once (Q5). */
export const maxCatchUp = 64
/**
 * How late a boundary may be under the policy `none`. Schedulers at the edge tick once a minute, and a
 * platform's timer may skip a few.
 */
export const graceMs = 5 * 60 * 1000

/** What a tick is to do with a schedule. */
export interface DueBoundaries {
  /** These fire, in order; maybe none. */
  fire: Date[]
  /** The schedule waits for this one afterwards; null: no more come. */
  next: Date | null
}

/**
 * Sorts the boundaries of a schedule up to `now` into those that fire and those that are passed over.
 *
 * @param firstMissed the first that has not fired, at or before `now`
 */
export function dueBoundaries(
  timing: ValidTiming,
  catchUp: CatchUp,
  firstMissed: Date,
  now: Date,
): DueBoundaries {
  const limit = catchUp === 'all' ? maxCatchUp : 1
  const newest = newestBoundaries(timing, firstMissed, now, limit)
  // The rules of a time zone may have changed since the boundary was stored: what was promised stands.
  const due = newest.length === 0 ? [firstMissed] : newest
  return {
    fire: catchUp === 'none' ? due.filter((at) => now.getTime() - at.getTime() <= graceMs) : due,
    next: nextBoundary(timing, now),
  }
}
