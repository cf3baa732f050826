import type { DirectConnection } from '../db/port.ts'
import type { Clock } from '../ports.ts'
import { within } from '../within.ts'

/** Longer than a sleeping database takes to wake, shorter than anyone wants to be without wakes. */
export const connectMs = 15_000

/** Makes a dedicated session; `signal` must end the attempt. */
export type Connect = (signal: AbortSignal) => Promise<DirectConnection>

/**
 * Connects within {@link connectMs}. On failure and abort the attempt has come to its end before this
 * rejects, so that nothing is left behind; one that ignores its signal is waited for no longer than
 * that again, and closed if it comes late.
 *
 * @throws DATABASE_UNAVAILABLE, ABORTED, or what `connect` throws
 */
export async function openConnection(
  connect: Connect,
  clock: Clock,
  signal: AbortSignal,
): Promise<DirectConnection> {
  const attempt = new AbortController()
  const pending = Promise.resolve().then(() => connect(attempt.signal))
  try {
    return await within(clock, { ms: connectMs, what: 'connecting', signal }, pending)
  } catch (error) {
    attempt.abort()
    const ended = pending.then(
      (late) => late.close(),
      () => {},
    )
    await within(clock, { ms: connectMs, what: 'the end of the attempt' }, ended).catch(() => {})
    throw error
  }
}
