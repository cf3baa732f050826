import { sleep } from '../../sleep.ts'
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
