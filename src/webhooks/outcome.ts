import { parseRetryAfter } from './retry-after.ts'
import type { SendAnswer, SendResult } from './sender.ts'

/** What an attempt means for its delivery. `why` is for the log and for people. */
export type Outcome =
  | { kind: 'delivered' }
  | { kind: 'retry'; delayMs: number; why: string }
  /** The last attempt failed. */
  | { kind: 'dead'; why: string }
  /** The receiver is gone for good (410): the whole webhook stops. */
  | { kind: 'disable'; why: string }
  /** The worker itself gave up, to shut down: nothing was learned, and the attempt does not count. */
  | { kind: 'abandoned' }

export interface AttemptFacts {
  result: SendResult
  /** The number of this attempt, from 1. */
  attempt: number
  /** So many attempts are made at most. Minimum 1. */
  maxAttempts: number
  /**
   * Milliseconds: `[i]` is the delay before attempt `i + 1`; past the end the last one
   * counts. Defaults to {@link defaultScheduleMs}.
   */
  scheduleMs?: readonly number[]
  /** Up to so many percent are added to the delay at random. 0 to 100. Defaults to 20. */
  jitterPercent?: number
  /** A random number from 0 up to 1. */
  random: () => number
  now: () => Date
}

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** Together 75 h: a receiver that breaks on a Friday evening is still tried on Monday. */
export const defaultScheduleMs: readonly number[] = [
  0, // the first attempt waits for nothing
  5 * secondMs, // a connection that broke, or a deploy that swaps processes
  5 * minuteMs, // a restart that takes its time
  30 * minuteMs, // a rollback
  2 * hourMs, // someone was called
  5 * hourMs, // an incident of half a day
  10 * hourMs, // the next morning
  14 * hourMs, // the next afternoon
  20 * hourMs, // from here about once a day, at shifting hours
  24 * hourMs, // a full day, as long as Retry-After may ask for
]

export const defaultJitterPercent = 20

/**
 * Decides what follows from an attempt. Only 2xx is success. 410 disables. All else,
 * redirects, other 4xx and forbidden targets too, is tried again by the schedule, never
 * before the time that `Retry-After` asks for, until `maxAttempts` are used up.
 * Source: Standard Webhooks 1.0.0, "Deliverability and reliability".
 */
export function decideOutcome(facts: AttemptFacts): Outcome {
  const { result } = facts
  if (result.kind === 'error') {
    if (result.reason === 'aborted') return { kind: 'abandoned' }
    return failed(facts, `${result.reason}: ${result.message}`, 0)
  }
  if (result.status >= 200 && result.status < 300) return { kind: 'delivered' }
  if (result.status === 410) return { kind: 'disable', why: 'answered 410 Gone' }
  return failed(facts, whyOf(result), (parseRetryAfter(result.retryAfter, facts.now()) ?? 0) * 1000)
}

function failed(facts: AttemptFacts, why: string, atLeastMs: number): Outcome {
  if (facts.attempt >= facts.maxAttempts) return { kind: 'dead', why }
  return { kind: 'retry', delayMs: Math.max(backoffMs(facts), atLeastMs), why }
}

function backoffMs({ attempt, scheduleMs = defaultScheduleMs, jitterPercent, random }: AttemptFacts): number {
  const delayMs = scheduleMs[Math.min(attempt, scheduleMs.length - 1)] ?? 0
  return Math.round(delayMs * (1 + (random() * (jitterPercent ?? defaultJitterPercent)) / 100))
}

function whyOf({ status }: SendAnswer): string {
  const redirect = status >= 300 && status < 400
  return redirect ? `answered ${status}; redirects are not followed` : `answered ${status}`
}
