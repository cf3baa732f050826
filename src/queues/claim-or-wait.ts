import type { Db } from '../db/port.ts'
import type { Clock } from '../ports.ts'
import { assertClaim, type Claimed, type ClaimOptions } from './claim-messages.ts'
import { ensureQueue } from './queue-settings.ts'
import { wholeNumber } from './validate-message.ts'
import type { WakeSource } from './work/wakes.ts'

/** Proxies cut silent connections after a minute, some after half of one. */
const maxWaitMs = 30_000

/** Options of a claim that may wait. */
export interface WaitingClaimOptions extends ClaimOptions {
  /** How long to wait for a message where there is none: 0 to 30000, default 0. */
  waitMs?: number
  /** Ends the wait; a claim that is under way by then is not undone. */
  signal?: AbortSignal
}

/** What the wait of a claim stands on. */
export interface ClaimWait {
  clock: Clock
  /** Subscribes to what tells that the queue may have something; the claim ends it. */
  attach(queue: string): Promise<WakeSource>
}

/**
 * Claims at once, and where there is nothing, again at each wake and when something falls due, until there is
 * something or `waitMs` have passed. Ends early, with what the last claim said, when the signal aborts or the wakes
 * end. While wakes arrive and none comes it makes no statement between the first and the last.
 *
 * @param claim one claim; nothing is waited for inside it, so callers may share its statements
 * @throws INVALID_INPUT, and what `claim` throws
 */
export async function claimOrWait(
  claim: (options: ClaimOptions) => Promise<Claimed>,
  queue: string,
  { waitMs = 0, signal, ...chosen }: WaitingClaimOptions,
  { clock, attach }: ClaimWait,
): Promise<Claimed> {
  wholeNumber(waitMs, 'waitMs', 0, maxWaitMs)
  if (waitMs === 0 || !(Math.floor(chosen.limit ?? 1) > 0)) return claim(chosen)
  // before a queue is made for the sake of its wakes
  assertClaim(queue, chosen)
  const deadline = clock.now() + waitMs
  // attach, then claim: what is sent in between has its wake noted
  const wakes = await attach(queue)
  try {
    for (;;) {
      const claimed = await claim(chosen)
      const leftMs = deadline - clock.now()
      if (claimed.messages.length > 0 || leftMs <= 0) return claimed
      const timeoutMs = Math.min(leftMs, claimed.nextDueMs ?? leftMs)
      if ((await wakes.wait({ signal, timeoutMs })) === 'aborted') return claimed
    }
  } finally {
    wakes.close()
  }
}

/** More queues than one process waits on; beyond it they are asked for again. */
const maxNumbers = 10_000

/** As ensureQueue, asking once for each queue: a queue keeps its number for as long as there are tables. */
export function createQueueNumbers(db: Db): (queue: string) => Promise<number> {
  const numbers = new Map<string, number>()
  return async (queue) => {
    const known = numbers.get(queue)
    if (known !== undefined) return known
    const number = await ensureQueue(db, queue)
    if (numbers.size >= maxNumbers) numbers.clear()
    numbers.set(queue, number)
    return number
  }
}
