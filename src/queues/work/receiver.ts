import type { Db } from '../../db/port.ts'
import { isMillraceError } from '../../errors/millrace-error.ts'
import type { Ports } from '../../ports.ts'
import { claimMessages, type ClaimOptions } from '../claim-messages.ts'
import type { ClaimedMessage } from '../message.ts'
import { createErrorBackoff } from './backoff.ts'
import { sleep } from '../../sleep.ts'
import type { WakeSource } from './wakes.ts'

/** Options of {@link createReceiver}. */
export interface ReceiverOptions extends Omit<ClaimOptions, 'limit'> {
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  wakes: WakeSource
  /** How often to look without a reason; null: never. */
  pollMs: number | null
  /** How many messages to claim beyond those that somebody waits for. */
  prefetch: number
  /** Called with each claim's messages before anybody gets one. @param claimedAt local time before it was sent */
  onClaimed?(messages: readonly ClaimedMessage[], claimedAt: number): void
}

/**
 * One loop that claims for everybody who waits: however many that are, an idle queue costs one query a
 * poll or wake. A claim that found something is followed by another at once.
 */
export interface Receiver {
  /** The next message; undefined when the signal aborts or the receiver stops. */
  next(signal?: AbortSignal): Promise<ClaimedMessage | undefined>
  /** Something may be there that no wake tells of: look now, or after the claim that is under way. */
  kick(): void
  /** Drops a message that was prefetched; false when it was handed out already. */
  drop(message: ClaimedMessage): boolean
  /**
   * Stops claiming, and sends away who waits. Resolves, after the claim that is under way, with what
   * was claimed and not handed out.
   */
  stop(): Promise<ClaimedMessage[]>
}

/** What the parts of a receiver share. */
interface Inside {
  db: Db
  queue: string
  options: ReceiverOptions
  buffer: ClaimedMessage[]
  waiters: Set<(message: ClaimedMessage | undefined) => void>
  stopping: AbortController
  /** Raised by `kick`, down when the loop looks. */
  kicked: boolean
  /** Tells the loop, if it waits, that something changed. */
  interrupt: () => void
}

export function createReceiver(db: Db, queue: string, options: ReceiverOptions): Receiver {
  const inside: Inside = {
    db,
    queue,
    options,
    buffer: [],
    waiters: new Set(),
    stopping: new AbortController(),
    kicked: false,
    interrupt: () => {},
  }
  const running = run(inside)
  return {
    next: (signal) => take(inside, signal),
    kick: () => kick(inside),
    drop(message) {
      const at = inside.buffer.indexOf(message)
      if (at >= 0) inside.buffer.splice(at, 1)
      return at >= 0
    },
    async stop() {
      inside.stopping.abort()
      inside.interrupt()
      for (const waiter of inside.waiters) waiter(undefined)
      await running
      return inside.buffer.splice(0)
    },
  }
}

function kick(inside: Inside): void {
  inside.kicked = true
  inside.interrupt()
}

function take(inside: Inside, signal?: AbortSignal): Promise<ClaimedMessage | undefined> {
  if (signal?.aborted || inside.stopping.signal.aborted) return Promise.resolve(undefined)
  const ready = inside.buffer.shift()
  if (ready !== undefined) {
    inside.interrupt()
    return Promise.resolve(ready)
  }
  return new Promise((resolve) => {
    const settle = (message: ClaimedMessage | undefined): void => {
      inside.waiters.delete(settle)
      signal?.removeEventListener('abort', leave)
      resolve(message)
    }
    const leave = (): void => settle(undefined)
    signal?.addEventListener('abort', leave)
    inside.waiters.add(settle)
    inside.interrupt()
  })
}

async function run(inside: Inside): Promise<void> {
  const { options, stopping } = inside
  const backoff = createErrorBackoff(options.ports.random)
  let foreign = false
  while (!stopping.signal.aborted) {
    const demand = demandOf(inside)
    if (demand === 0) {
      await forDemand(inside)
      continue
    }
    try {
      const nextDueMs = await claim(inside, demand)
      backoff.reset()
      if (foreign) {
        const facts = { queue: inside.queue }
        options.ports.log.info(facts, 'the database belongs to this environment now: claiming goes on')
      }
      foreign = false
      if (nextDueMs !== 'more') await forReason(inside, nextDueMs)
    } catch (error) {
      if (isMillraceError(error) && error.code === 'WRONG_ENVIRONMENT') {
        // told once; adopting the database wakes everybody
        if (!foreign) options.ports.log.error({ queue: inside.queue }, error.message)
        foreign = true
        await forReason(inside, null)
        continue
      }
      options.ports.log.warn({ queue: inside.queue, err: error }, 'Could not claim messages.')
      await sleep(options.ports.clock, backoff.next(), stopping.signal)
    }
  }
}

/** How many messages to claim now. Where nobody waits, the stock is refilled when half of it is gone. */
function demandOf({ waiters, buffer, options: { prefetch } }: Inside): number {
  if (waiters.size === 0 && buffer.length * 2 > prefetch) return 0
  return Math.max(0, waiters.size + prefetch - buffer.length)
}

/** Claims once and hands out. Returns `more` when it is worth to claim again, else when something is due. */
async function claim(inside: Inside, limit: number): Promise<'more' | number | null> {
  const { options } = inside
  inside.kicked = false
  const claimedAt = options.ports.clock.now()
  const { messages, nextDueMs } = await claimMessages(inside.db, inside.queue, {
    limit,
    types: options.types,
    leaseMs: options.leaseMs,
  })
  options.onClaimed?.(messages, claimedAt)
  for (const message of messages) {
    const [waiter] = inside.waiters
    if (waiter === undefined) inside.buffer.push(message)
    else waiter(message)
  }
  return messages.length > 0 || nextDueMs === 0 ? 'more' : nextDueMs
}

/** Waits until somebody wants a message, or the receiver stops. */
function forDemand(inside: Inside): Promise<void> {
  return new Promise((resolve) => {
    inside.interrupt = resolve
  })
}

/** Waits for a wake, the next due time, the next poll, a kick, or the end. New demand is no reason. */
async function forReason(inside: Inside, nextDueMs: number | null): Promise<void> {
  if (inside.kicked || inside.stopping.signal.aborted) return
  const waiting = new AbortController()
  inside.interrupt = () => {
    if (inside.kicked || inside.stopping.signal.aborted) waiting.abort()
  }
  const timeoutMs = Math.min(nextDueMs ?? Infinity, inside.options.pollMs ?? Infinity)
  const outcome = await inside.options.wakes.wait({
    signal: waiting.signal,
    ...(timeoutMs === Infinity ? {} : { timeoutMs }),
  })
  // The source has ended: from here on only time tells. A second keeps this from spinning.
  if (outcome === 'aborted' && !waiting.signal.aborted) {
    await sleep(inside.options.ports.clock, Math.min(timeoutMs, 1000), waiting.signal)
  }
}
