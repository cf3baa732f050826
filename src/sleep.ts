import type { Clock } from './ports.ts'

/** setTimeout fires at once beyond 2^31 - 1 ms; waking up after a day for nothing costs nothing. */
const longestTimerMs = 86_400_000

/**
 * Resolves after `ms` (at most a day; Infinity: never), or as soon as the signal aborts. Never rejects, and
 * leaves neither timer nor listener behind.
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      if (timer !== undefined) clock.clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = ms === Infinity ? undefined : clock.setTimeout(done, Math.min(ms, longestTimerMs))
    signal?.addEventListener('abort', done)
  })
}
