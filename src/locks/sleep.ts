import type { Clock } from '../ports.ts'

/** Resolves after `ms`, or as soon as the signal aborts; never rejects, and leaves no timer or listener. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const wake = (): void => {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = clock.setTimeout(wake, ms)
    signal?.addEventListener('abort', wake, { once: true })
  })
}
