import type { Clock, TimerHandle } from '../ports.ts'
import type { Ring } from './ring.ts'

/** Hands rings on, but not one by one when they come in crowds. */
export interface Coalescer {
  add(ring: Ring): void
  /** Drops what has not been handed on. */
  close(): void
}

/**
 * Hands the first ring on at once; what comes within `gapMs` after one is handed on together, at its end. So
 * however often the bell rings, the forwarder looks at most every `gapMs`, and no ring is lost.
 */
export function createCoalescer(
  clock: Clock,
  gapMs: number,
  onRing: (streamIds: Ring['streamIds']) => void,
): Coalescer {
  const waiting = new Set<number>()
  let all = false
  let gap: TimerHandle | undefined
  let closed = false

  function handOn(): void {
    gap = undefined
    if (!all && waiting.size === 0) return
    const streamIds = all ? 'all' : [...waiting]
    all = false
    waiting.clear()
    gap = clock.setTimeout(handOn, gapMs)
    onRing(streamIds)
  }

  return {
    add({ streamIds }) {
      if (closed) return
      if (streamIds === 'all') all = true
      else for (const id of streamIds) waiting.add(id)
      if (gap === undefined) handOn()
    },
    close() {
      closed = true
      if (gap !== undefined) clock.clearTimeout(gap)
    },
  }
}
