import type { Clock } from '../ports.ts'
import { sleep } from '../sleep.ts'
import type { AttachWake } from './subscribe.ts'

/** How a subscription polls where nothing wakes it. */
export interface PollOptions {
  /** The first idle poll comes after this many milliseconds. Default 500. */
  minMs?: number
  /** How far the doubling goes. Default 4000. */
  maxMs?: number
}

/** For hosts without a LISTEN connection: reads again in growing intervals, short ones after activity (N4). */
export function createPollingAttach(
  clock: Clock,
  { minMs = 500, maxMs = 4_000 }: PollOptions = {},
): AttachWake {
  return () => {
    let intervalMs = minMs
    const closed = new AbortController()
    return {
      async wait(signal, withinMs = Infinity) {
        const waitMs = Math.min(intervalMs, withinMs)
        intervalMs = Math.min(intervalMs * 2, maxMs)
        const end = AbortSignal.any([signal, closed.signal])
        await sleep(clock, waitMs, end)
        return end.aborted ? 'aborted' : 'poll'
      },
      active: () => void (intervalMs = minMs),
      close: () => closed.abort(),
    }
  }
}
