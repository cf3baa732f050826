import { invalidInput } from '../../errors/millrace-error.ts'
import type { Ports } from '../../ports.ts'
import { assertTypes } from '../claim-messages.ts'
import { wholeNumber } from '../validate-message.ts'
import type { WakeSource } from './wakes.ts'

/** Options of {@link workQueue}. All durations must be above 0. */
export interface WorkOptions {
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  /** How many handlers run at a time: 1 to 1000, default 10. */
  concurrency?: number
  /**
   * How many messages are claimed ahead, so that a handler need not wait for a round trip: 0 to 1000,
   * default as many as `concurrency`. They are leased, so no other process takes them.
   */
  prefetch?: number
  /** Only messages of these types; default, and where the list is empty, all. */
  types?: readonly string[]
  /** How long a lease lasts; it is prolonged for as long as the handler runs. Default: what each message says. */
  leaseMs?: number
  /**
   * Where wakes come from, given the queue's subject (`q` and its number):
   * `(subject) => forwarder.subscribeWakes([subject])`. Default: none, polls alone.
   */
  wakes?: (subject: `q${number}`) => WakeSource
  /**
   * How often to look though nothing said so; null: never, for wakes that poll by themselves where
   * they must. Default 1000, with wakes 60000.
   */
  pollMs?: number | null
  /** Settles go when so many are together (up to 1000 that came meanwhile go with them): 1 to 10000, default 100 … */
  ackBatchSize?: number
  /** … or after this time. Default 5. */
  ackBatchMs?: number
  /** How long `stop` waits for running handlers before it aborts their signals, and for the database. Default 30000. */
  stopGraceMs?: number
  /** Stops the worker, as `stop` does. */
  signal?: AbortSignal
}

/** Options with their defaults filled in. */
export type ResolvedOptions = WorkOptions &
  Required<Pick<WorkOptions, 'concurrency' | 'prefetch' | 'ackBatchSize' | 'ackBatchMs' | 'stopGraceMs'>> & {
    pollMs: number | null
  }

/**
 * Fills in defaults and checks.
 *
 * @throws INVALID_INPUT naming the option
 */
export function resolveOptions(options: WorkOptions): ResolvedOptions {
  const concurrency = options.concurrency ?? 10
  const resolved: ResolvedOptions = {
    ...options,
    concurrency,
    prefetch: options.prefetch ?? concurrency,
    pollMs: options.pollMs === undefined ? (options.wakes === undefined ? 1000 : 60_000) : options.pollMs,
    ackBatchSize: options.ackBatchSize ?? 100,
    ackBatchMs: options.ackBatchMs ?? 5,
    stopGraceMs: options.stopGraceMs ?? 30_000,
  }
  wholeNumber(resolved.concurrency, 'concurrency', 1, 1000)
  wholeNumber(resolved.prefetch, 'prefetch', 0, 1000)
  wholeNumber(resolved.ackBatchSize, 'ackBatchSize', 1, 10_000)
  assertDuration('ackBatchMs', resolved.ackBatchMs)
  assertDuration('stopGraceMs', resolved.stopGraceMs)
  if (resolved.pollMs !== null) assertDuration('pollMs', resolved.pollMs)
  if (resolved.types !== undefined) assertTypes(resolved.types)
  if (resolved.signal !== undefined) assertSignal(resolved.signal)
  if (resolved.leaseMs !== undefined) wholeNumber(resolved.leaseMs, 'leaseMs', 1, 86_400_000)
  return resolved
}

/**
 * Checks what is to work the messages.
 *
 * @throws INVALID_INPUT
 */
export function assertHandler(handler: unknown): void {
  if (typeof handler !== 'function') throw invalidInput('handler', 'must be a function')
}

function assertSignal(signal: unknown): void {
  if (!(signal instanceof AbortSignal)) throw invalidInput('signal', 'must be an AbortSignal')
}

function assertDuration(field: string, value: number): void {
  if (!Number.isFinite(value) || value <= 0)
    throw invalidInput(field, 'must be a number of milliseconds above 0')
}
