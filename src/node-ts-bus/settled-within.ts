import type { Clock } from '../ports.ts'
import { sleep } from '../sleep.ts'

/** Resolves when `work` has ended, however it did, or after `ms`. */
export async function settledWithin(clock: Clock, work: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController()
  const ended = work.then(
    () => {},
    () => {},
  )
  await Promise.race([ended, sleep(clock, ms, over.signal)])
  over.abort()
}
