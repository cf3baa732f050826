import type { RetryStrategy } from '@node-ts/bus-core'
import { loggable } from '../errors/describe-error.ts'
import type { Log } from '../ports.ts'
import type { ClaimedMessage } from '../queues/message.ts'

const longestMs = 366 * 86_400_000

/**
 * When the bus's strategy wants a message again, in whole milliseconds. A strategy that throws, or answers
 * what is no number, must not keep the message from coming again: the message's own backoff holds then.
 */
export function retryDelayMs(strategy: RetryStrategy, message: ClaimedMessage, log: Log): number | undefined {
  try {
    // it counts from 0: how many retries there were before
    const delayMs = Number(strategy.calculateRetryDelay(message.attempt - 1))
    if (!Number.isNaN(delayMs)) return Math.min(Math.max(0, Math.round(delayMs)), longestMs)
    log.error({ message: message.id }, 'The retry strategy gave no number of milliseconds.')
  } catch (error) {
    log.error({ message: message.id, err: loggable(error) }, 'The retry strategy failed.')
  }
  return undefined
}
