import type { Db } from '../../db/port.ts'
import type { Ports, TimerHandle } from '../../ports.ts'
import type { ClaimedMessage } from '../message.ts'
import {
  ackMessages,
  failMessages,
  retryMessages,
  returnMessages,
  type Failure,
  type Retry,
} from '../settle-messages.ts'
import { createErrorBackoff } from './backoff.ts'
import { sleep } from '../../sleep.ts'

/** What has come together during a flush goes with the next one, up to so many, whatever makes a flush go. */
const maxBatch = 1000

/** How a message is to be settled. */
export type Settlement =
  | { kind: 'ack' }
  | { kind: 'retry'; delayMs?: number; error?: string }
  | { kind: 'fail'; reason: string }
  | { kind: 'return' }

/** Settles messages in batches: one statement a kind. */
export interface Settler {
  /** Resolves when it is done: whether the lease still held, or `unknown` when the database could not be asked. */
  settle(message: ClaimedMessage, how: Settlement): Promise<boolean | 'unknown'>
  /** Settles what is there, and resolves when nothing is left. */
  flush(): Promise<void>
  /** From now on a failed flush is not tried again. */
  hurry(): void
}

/** Options of {@link createSettler}. */
export interface SettlerOptions {
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  /** So many make a batch go at once. */
  batchSize: number
  /** No message waits longer for others to join it. */
  batchMs: number
}

interface Item {
  message: ClaimedMessage
  how: Settlement
  done(outcome: boolean | 'unknown'): void
  /** Local time until when a failed flush is worth trying again: a lease from the first one on. */
  until: number | undefined
}

/** One flush runs at a time; what comes meanwhile makes the next one. */
export function createSettler(db: Db, queue: string, options: SettlerOptions): Settler {
  const { clock, log, random } = options.ports
  const hurrying = new AbortController()
  const pending: Item[] = []
  let timer: TimerHandle | undefined
  let flushing: Promise<void> | undefined

  async function flushAll(): Promise<void> {
    const backoff = createErrorBackoff(random)
    while (pending.length > 0) {
      const batch = pending.splice(0, Math.max(options.batchSize, maxBatch))
      for (const item of batch) item.until ??= clock.now() + item.message.leaseMs
      const failed = await settleBatch(db, queue, batch, (error) =>
        log.warn({ queue, messages: batch.length, err: error }, 'Could not settle messages.'),
      )
      const again = failed.filter((item) => worthAnother(item))
      for (const item of failed) if (!again.includes(item)) item.done('unknown')
      pending.unshift(...again)
      if (again.length > 0) await sleep(clock, backoff.next(), hurrying.signal)
    }
    // in the same breath as the last look, or what comes in between would wait for nobody
    flushing = undefined
  }
  function worthAnother(item: Item): boolean {
    return item.until! > clock.now() && !hurrying.signal.aborted
  }
  function start(): Promise<void> {
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
    if (pending.length === 0 && flushing === undefined) return Promise.resolve()
    flushing ??= flushAll()
    return flushing
  }
  return {
    settle(message, how) {
      return new Promise((done) => {
        pending.push({ message, how, done, until: undefined })
        if (pending.length >= options.batchSize) void start()
        else if (flushing === undefined) timer ??= clock.setTimeout(() => void start(), options.batchMs)
      })
    },
    flush: start,
    hurry: () => hurrying.abort(),
  }
}

/** Settles a batch, one statement for each kind in it. Returns the items whose statement failed. */
async function settleBatch(
  db: Db,
  queue: string,
  batch: Item[],
  onError: (error: unknown) => void,
): Promise<Item[]> {
  const failed: Item[] = []
  for (const kind of ['ack', 'retry', 'fail', 'return'] as const) {
    const items = batch.filter((item) => item.how.kind === kind)
    if (items.length === 0) continue
    try {
      const held = await settleKind(db, queue, kind, items)
      items.forEach((item, index) => item.done(held[index] ?? false))
    } catch (error) {
      onError(error)
      failed.push(...items)
    }
  }
  return failed
}

async function settleKind(
  db: Db,
  queue: string,
  kind: Settlement['kind'],
  items: Item[],
): Promise<boolean[]> {
  const held = items.map((item) => item.message)
  if (kind === 'ack') return ackMessages(db, queue, held)
  if (kind === 'return') return returnMessages(db, queue, held)
  const settled = items.map(({ message: { id, lease }, how }) => ({ id, lease, ...how }))
  if (kind === 'fail') return failMessages(db, queue, settled as Failure[])
  const outcomes = await retryMessages(db, queue, settled as Retry[])
  return outcomes.map((outcome) => outcome !== 'lost')
}
