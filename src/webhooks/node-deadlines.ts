import { createLinkedList, type Link, type LinkedList } from './linked-list.ts'

interface Limit {
  endsAt: number
  onPassed: () => void
  series: Series
}

/** Those of one length, which end in the order in which they began. */
type Series = LinkedList<Limit>

/** A time limit that runs. */
export type RunningDeadline = Link<Limit>

/** Time limits of which nearly none is ever reached. */
export interface Deadlines {
  /** Calls back after so many milliseconds, unless it is cleared. */
  start(ms: number, onPassed: () => void): RunningDeadline
  clear(deadline: RunningDeadline): void
}

/**
 * One timer for all limits of one length: it looks at the oldest, and comes again when that one ends. A timer for each
 * is set and cleared for nothing thousands of times a second. They keep no process alive, as the connections do that
 * they are for.
 *
 * @param nowMs a clock that never goes back, in milliseconds
 */
export function createDeadlines(nowMs: () => number): Deadlines {
  const seriesOf = new Map<number, Series>()

  function arm(series: Series, ms: number, length: number): void {
    setTimeout(() => look(series, length), ms).unref()
  }

  function look(series: Series, length: number): void {
    let { first } = series
    for (; first !== null && first.value.endsAt <= nowMs(); first = series.first) {
      series.remove(first)
      first.value.onPassed()
    }
    if (first === null) seriesOf.delete(length)
    else arm(series, Math.ceil(first.value.endsAt - nowMs()), length)
  }

  return {
    start(ms, onPassed) {
      let series = seriesOf.get(ms)
      if (series === undefined) {
        series = createLinkedList()
        seriesOf.set(ms, series)
        arm(series, ms, ms)
      }
      return series.add({ endsAt: nowMs() + ms, onPassed, series })
    },
    clear: (deadline) => deadline.value.series.remove(deadline),
  }
}
