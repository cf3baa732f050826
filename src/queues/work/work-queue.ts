import type { Db } from '../../db/port.ts'
import { describeError, loggable } from '../../errors/describe-error.ts'
import { invalidInput, MillraceError } from '../../errors/millrace-error.ts'
import { assertSharedName } from '../../schema/names.ts'
import type { ClaimedMessage } from '../message.ts'
import { ensureQueue } from '../queue-settings.ts'
import { assertDelay } from '../settle-messages.ts'
import { createErrorBackoff } from './backoff.ts'
import { createLeaseKeeper, type LeaseKeeper } from './lease-keeper.ts'
import { assertHandler, resolveOptions, type ResolvedOptions, type WorkOptions } from './options.ts'
import { createReceiver, type Receiver } from './receiver.ts'
import { createSettler, type Settlement, type Settler } from './settler.ts'
import { sleep } from '../../sleep.ts'
import { createTimerSource, type WakeSource } from './wakes.ts'

/**
 * What a handler may return instead of nothing: to try again (default: after the message's own
 * backoff), to give up, or to say that it has settled the message itself, as in a transaction of its own.
 *
 * Whatever else it returns is an ack, such as the number that `(message) => list.push(message)` does; but an object
 * with an `outcome` that is none of these counts as thrown.
 */
export type HandlerOutcome =
  | { outcome: 'ack' }
  | { outcome: 'retry'; delayMs?: number; error?: string }
  | { outcome: 'fail'; reason: string }
  | { outcome: 'settled' }

/** Works one message. Returning is an ack, but for an outcome; throwing is a retry, with the error's message kept. */
export type MessageHandler = (
  message: ClaimedMessage,
  context: HandlerContext,
) => Promise<HandlerOutcome | void> | HandlerOutcome | void

/** What comes with a message. */
export interface HandlerContext {
  /**
   * Aborts when the lease is lost (reason LEASE_LOST: somebody else may be at the message by now, and
   * nothing that is returned will count), or when the worker stops and its grace is over (ABORTED).
   */
  signal: AbortSignal
}

/** A running worker. */
export interface Worker {
  /**
   * Claims no more, gives back what was not begun, waits for what was (up to `stopGraceMs`, then aborts
   * it), and settles what is done. Resolves at most 2 s after the grace: what a silent database has not
   * settled by then is left to its lease. Every call returns the same promise.
   */
  stop(): Promise<void>
  /** Resolves when it has stopped. */
  readonly stopped: Promise<void>
}

interface Parts {
  db: Db
  queue: string
  handler: MessageHandler
  options: ResolvedOptions
  stopping: AbortController
  keeper: LeaseKeeper
  settler: Settler
}

/**
 * What a handler that ignores its signal is given after it was aborted, and the database to settle what is done when
 * nothing is left of the grace; leases then run out by themselves.
 */
const lastGraceMs = 1000

/**
 * Works a queue until stopped: claims messages, runs the handler on up to `concurrency` of them at a
 * time, keeps their leases alive and settles them in batches. Errors of the database are logged and
 * tried again.
 *
 * @throws INVALID_NAME, INVALID_INPUT at once
 */
export function workQueue(db: Db, queue: string, handler: MessageHandler, options: WorkOptions): Worker {
  assertSharedName('queue', queue)
  assertHandler(handler)
  const resolved = resolveOptions(options)
  const stopping = new AbortController()
  const stop = (): void => stopping.abort()
  if (resolved.signal?.aborted) stop()
  resolved.signal?.addEventListener('abort', stop)
  const stopped = run(db, queue, handler, resolved, stopping).finally(() =>
    resolved.signal?.removeEventListener('abort', stop),
  )
  return {
    stopped,
    stop() {
      stop()
      return stopped
    },
  }
}

async function run(
  db: Db,
  queue: string,
  handler: MessageHandler,
  options: ResolvedOptions,
  stopping: AbortController,
): Promise<void> {
  const wakes = await subscribe(db, queue, options, stopping.signal)
  if (wakes === undefined) return
  const keeper = createLeaseKeeper({ db, queue, ports: options.ports, onLost: (message) => lost(message) })
  const receiver = createReceiver(db, queue, { ...options, wakes, onClaimed: keeper.hold })
  const lost = (message: ClaimedMessage): void => {
    receiver.drop(message)
    options.ports.log.warn({ queue, message: message.id }, 'The lease of a message is lost.')
  }
  const settler = createSettler(db, queue, {
    ports: options.ports,
    batchSize: options.ackBatchSize,
    batchMs: options.ackBatchMs,
  })
  const parts: Parts = { db, queue, handler, options, stopping, keeper, settler }
  const handlers = Array.from({ length: options.concurrency }, () => handleAll(parts, receiver))
  await aborted(stopping.signal)
  await windDown(parts, receiver, Promise.all(handlers))
  wakes.close()
}

/** The queue's number has to be known to subscribe to its wakes. Subscribed before the first claim. */
async function subscribe(
  db: Db,
  queue: string,
  options: ResolvedOptions,
  signal: AbortSignal,
): Promise<WakeSource | undefined> {
  const { ports, wakes } = options
  const backoff = createErrorBackoff(ports.random)
  const stopped = aborted(signal)
  while (!signal.aborted) {
    try {
      const id = await Promise.race([ensureQueue(db, queue), stopped])
      if (id === undefined) return undefined
      return wakes === undefined ? createTimerSource(ports.clock) : wakes(`q${id}`)
    } catch (error) {
      ports.log.warn({ queue, err: error }, 'Could not open the queue.')
      await sleep(ports.clock, backoff.next(), signal)
    }
  }
  return undefined
}

/** One of `concurrency` such loops. */
async function handleAll(parts: Parts, receiver: Receiver): Promise<void> {
  for (;;) {
    const message = await receiver.next()
    if (message === undefined) return
    const held = parts.keeper.inHand(message)
    // lost between claim and here: it is somebody else's now
    if (held === undefined) continue
    const how = await handle(parts, message, held)
    if (how === undefined) {
      parts.keeper.release(message)
      settled(receiver, message, how)
    } else void settle(parts, message, how).then((held) => held && settled(receiver, message, how))
  }
}

/** Where no wake comes from the database, its own retries and freed keys are news all the same. */
function settled(receiver: Receiver, message: ClaimedMessage, how: Settlement | undefined): void {
  if (message.key !== null || how?.kind !== 'ack') receiver.kick()
}

/** @param context what makes a signal when the handler asks for it */
async function handle(
  parts: Parts,
  message: ClaimedMessage,
  context: HandlerContext,
): Promise<Settlement | undefined> {
  try {
    const returned: unknown = await parts.handler(message, context)
    return hasOutcome(returned) ? toSettlement(returned) : { kind: 'ack' }
  } catch (error) {
    const { queue, options } = parts
    const facts = { queue, message: message.id, err: loggable(error) }
    options.ports.log.warn(facts, 'The handler of a message failed.')
    return { kind: 'retry', error: describeError(error) }
  }
}

function hasOutcome(returned: unknown): returned is HandlerOutcome {
  return typeof returned === 'object' && returned !== null && 'outcome' in returned
}

/** @throws INVALID_INPUT for what is none, or cannot be done */
function toSettlement(outcome: HandlerOutcome): Settlement | undefined {
  switch (outcome.outcome) {
    case 'ack':
      return { kind: 'ack' }
    case 'retry':
      if (outcome.delayMs !== undefined) assertDelay(outcome.delayMs)
      return { kind: 'retry', delayMs: outcome.delayMs, error: outcome.error }
    case 'fail':
      return { kind: 'fail', reason: outcome.reason }
    case 'settled':
      return undefined
    default: {
      const { outcome: other } = outcome as { outcome: unknown }
      const words = typeof other === 'string' ? `"${other}"` : describeError(other)
      throw invalidInput('outcome', `must be ack, retry, fail or settled, not ${words.slice(0, 100)}`)
    }
  }
}

/** Resolves when it is done: whether the lease still held, as far as is known. */
function settle(parts: Parts, message: ClaimedMessage, how: Settlement): Promise<boolean> {
  parts.keeper.settling(message)
  return parts.settler.settle(message, how).then((held) => {
    parts.keeper.release(message)
    if (held === false) {
      const facts = { queue: parts.queue, message: message.id }
      parts.options.ports.log.warn(facts, 'A message was settled after its lease was lost.')
    }
    return held === true
  })
}

async function windDown(parts: Parts, receiver: Receiver, handlers: Promise<unknown>): Promise<void> {
  const { queue, options, keeper, settler } = parts
  const { clock, log } = options.ports
  const graceEndsAt = clock.now() + options.stopGraceMs
  const givenBack = giveBack(parts, receiver)
  if (!(await endsWithin(parts, handlers, options.stopGraceMs))) {
    keeper.abortAll(new MillraceError('ABORTED', 'the worker stops'))
    await endsWithin(parts, handlers, lastGraceMs)
  }
  const settling = Promise.all([givenBack, settler.flush()])
  const restMs = Math.max(graceEndsAt - clock.now(), lastGraceMs)
  if (!(await endsWithin(parts, settling, restMs))) {
    settler.hurry()
    const facts = { queue, messages: keeper.count() }
    log.warn(
      facts,
      'The database did not answer before the worker stopped: what was in hand is left to its lease.',
    )
  }
  keeper.close()
}

/** What was claimed and not begun. The claim that is under way has to be answered first. */
async function giveBack(parts: Parts, receiver: Receiver): Promise<void> {
  const notBegun = await receiver.stop()
  const returned = Promise.all(notBegun.map((message) => settle(parts, message, { kind: 'return' })))
  void parts.settler.flush()
  await returned
}

/** Whether it ended in so many milliseconds. */
async function endsWithin(parts: Parts, work: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController()
  const ended = work.then(() => true)
  const late = sleep(parts.options.ports.clock, ms, over.signal).then(() => false)
  const inTime = await Promise.race([ended, late])
  over.abort()
  return inTime
}

function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}
