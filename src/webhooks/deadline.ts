import type { Cancel } from './cancel.ts'

/** One time limit over all that an attempt does. */
export interface Deadline {
  signal: AbortSignal
  /**
   * The work's result, or a rejection at the deadline even if the work does not heed the
   * signal: undici, for one, notices an abort only once it is connected.
   */
  race<Result>(work: Promise<Result>): Promise<Result>
  /** Which end came first; null while none has. */
  ended(): 'timeout' | 'aborted' | null
  /** Frees the timer and the listener. Call it when the attempt is over. */
  clear(): void
}

/** Starts a deadline that also ends when one of the given is cancelled. */
export function startDeadline(timeoutMs: number, outer: readonly (Cancel | undefined)[]): Deadline {
  const controller = new AbortController()
  let ended: 'timeout' | 'aborted' | null = null
  const end = (how: 'timeout' | 'aborted') => {
    ended ??= how
    controller.abort()
  }
  const abort = () => end('aborted')
  const timer = setTimeout(() => end('timeout'), timeoutMs)
  const links = outer.map((cancel) => {
    if (cancel?.cancelled === true) abort()
    return cancel?.add(abort)
  })
  return {
    signal: controller.signal,
    race: (work) => Promise.race([work, rejectOnAbort(controller.signal)]),
    ended: () => ended,
    clear() {
      clearTimeout(timer)
      for (const [index, link] of links.entries()) if (link !== undefined) outer[index]?.delete(link)
    },
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => reject(new Error('the attempt is over'))
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
