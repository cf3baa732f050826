import type { Clock } from '../ports.ts'
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
      wait(signal, withinMs = Infinity) {
        const waitMs = Math.min(intervalMs, withinMs)
        intervalMs = Math.min(intervalMs * 2, maxMs)
        return sleep(clock, waitMs, AbortSignal.any([signal, closed.signal]))
      },
      active: () => void (intervalMs = minMs),
      close: () => closed.abort(),
    }
  }
}

function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<'poll' | 'aborted'> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve('aborted')
    const finish = (why: 'poll' | 'aborted'): void => {
      clock.clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      resolve(why)
    }
    const onAbort = (): void => finish('aborted')
    const timer = clock.setTimeout(() => finish('poll'), ms)
    signal.addEventListener('abort', onAbort)
  })
}
