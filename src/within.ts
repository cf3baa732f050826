import { MillraceError } from './errors/millrace-error.ts'
import type { Clock } from './ports.ts'

/** The bounds of {@link within}. */
export interface Bounds {
  ms: number
  /** For the message: what took too long. */
  what: string
  signal?: AbortSignal
}

/**
 * Awaits `work`, but no longer than `ms`, nor past an abort. What `work` does after that is the
 * caller's to clean up; its late rejection is swallowed.
 *
 * @throws DATABASE_UNAVAILABLE after `ms`; ABORTED
 */
export function within<T>(clock: Clock, bounds: Bounds, work: Promise<T>): Promise<T> {
  const { ms, what, signal } = bounds
  return new Promise((resolve, reject) => {
    const aborted = (): void => fail(new MillraceError('ABORTED', `${what} was given up`))
    const cleanUp = (): void => {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', aborted)
    }
    const fail = (error: unknown): void => {
      cleanUp()
      reject(error)
    }
    const timer = clock.setTimeout(
      () => fail(new MillraceError('DATABASE_UNAVAILABLE', `${what} took longer than ${ms} ms`)),
      ms,
    )
    signal?.addEventListener('abort', aborted)
    if (signal?.aborted) aborted()
    work.then((value) => {
      cleanUp()
      resolve(value)
    }, fail)
  })
}
