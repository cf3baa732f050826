import type { Clock } from '../../ports.ts'

/**
 * What tells a worker that its queue may have something. src/wakes' WakeSignal is one: its flag stays
 * up until somebody waits, so that a wake that comes during a claim is not lost.
 */
export interface WakeSource {
  /**
   * Resolves when there was a wake, after `timeoutMs` (default: never), or with `aborted` when the
   * signal aborts; what else it resolves with does not matter.
   */
  wait(options: { signal?: AbortSignal; timeoutMs?: number }): Promise<string>
  /** Ends it. */
  close(): void
}

/** No wakes at all: only the time-outs. */
export function createTimerSource(clock: Clock): WakeSource {
  return {
    async wait({ signal, timeoutMs }) {
      await sleep(clock, timeoutMs ?? Infinity, signal)
      return signal?.aborted ? 'aborted' : 'timeout'
    },
    close() {},
  }
}

/** setTimeout fires at once beyond 2^31 - 1 ms; waking up after a day for nothing costs nothing. */
const longestTimerMs = 86_400_000

/** Resolves after `ms` (at most a day; Infinity: never), or as soon as the signal aborts. */
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
