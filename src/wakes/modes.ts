import { MillraceError } from '../errors/millrace-error.ts'

/**
 * Whether wakes arrive:
 * - `starting`: not yet known, the first connection is being made;
 * - `listening`: they do, nothing needs to be polled;
 * - `polling`: this address lets none through (a transaction-mode pooler, a standby, `listen: false`);
 * - `degraded`: the connection is lost and being made again, so poll meanwhile;
 * - `sleeping`: the connection was let go, and comes back when something is due or somebody rings; until it
 *   stands again the loops of the process make no statement;
 * - `closed`: the end.
 */
export type WakeMode = 'starting' | 'listening' | 'polling' | 'degraded' | 'sleeping' | 'closed'

/** The mode, and word of its changes. */
export interface WakeModes {
  readonly mode: WakeMode
  /** Calls `fn` after each change; returns the function that ends that. */
  onMode(fn: (mode: WakeMode) => void): () => void
  /**
   * Resolves once the mode is `mode`, at once if it is already.
   *
   * @throws ABORTED; STORE_CLOSED when it can never come
   */
  waitFor(mode: WakeMode, options?: { signal?: AbortSignal }): Promise<void>
}

/** A {@link WakeModes} that its owner can change. */
export interface ModeCell extends WakeModes {
  set(mode: WakeMode): void
}

export function createModeCell(): ModeCell {
  let mode: WakeMode = 'starting'
  const listeners = new Set<(mode: WakeMode) => void>()
  const onMode: WakeModes['onMode'] = (fn) => {
    // wrapped, so that the same function given twice is two listeners
    const listener = (next: WakeMode): void => fn(next)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return {
    get mode() {
      return mode
    },
    set(next) {
      if (next === mode || mode === 'closed') return
      mode = next
      for (const listener of Array.from(listeners)) listener(next)
    },
    onMode,
    waitFor: (wanted, options) => waitFor({ current: () => mode, onMode }, wanted, options?.signal),
  }
}

function waitFor(
  modes: { current: () => WakeMode; onMode: WakeModes['onMode'] },
  wanted: WakeMode,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      off()
      signal?.removeEventListener('abort', check)
      finish()
    }
    const check = (): void => {
      const mode = modes.current()
      if (mode === wanted) settle(resolve)
      else if (signal?.aborted) settle(() => reject(new MillraceError('ABORTED', 'the wait was aborted')))
      else if (mode === 'closed') {
        settle(() => reject(new MillraceError('STORE_CLOSED', 'the forwarder was closed')))
      }
    }
    const off = modes.onMode(check)
    signal?.addEventListener('abort', check)
    check()
  })
}
