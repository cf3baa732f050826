import type { Db } from '../db/port.ts'
import type { Ports, TimerHandle } from '../ports.ts'
import type { ClaimedMessage } from '../queues/message.ts'
import { createLeaseKeeper } from '../queues/work/lease-keeper.ts'
import { createReceiver, type Receiver } from '../queues/work/receiver.ts'
import type { Settler } from '../queues/work/settler.ts'
import type { WakeSource } from '../queues/work/wakes.ts'
import { settledWithin } from './settled-within.ts'

/** What {@link createInbox} takes. */
export interface InboxParts {
  db: Db
  queue: string
  leaseMs: number
  maxHandlingMs: number
  ports: Pick<Ports, 'clock' | 'random' | 'log'>
  wakes: (subject: `q${number}`) => WakeSource
  settler: Settler
}

/** The receiving side: reads that block, and the leases of what was handed out. */
export interface Inbox {
  /** Lets reads find something. @param queueId the database's number of the queue */
  start(queueId: number): void
  /** Blocks until there is a message; undefined when stopped. */
  next(): Promise<ClaimedMessage | undefined>
  /** The message is about to be settled: its lease is prolonged until it is released, and its end is no loss. */
  settling(message: ClaimedMessage): void
  /** The message is settled: prolong its lease no more. */
  release(message: ClaimedMessage): void
  /** Something may be due at another time now; `later`: once the next read comes. */
  kick(when: 'now' | 'later'): void
  /** Sends waiting reads away and gives back what nobody got. May be started again. */
  stop(): Promise<void>
  /** Ends the heartbeats; after `stop`, when the last message is settled. */
  close(): Promise<void>
}

/** A claim in flight on a dead connection is not waited for: what it claims comes again after its lease. */
const stopMs = 5000

interface Run {
  receiver: Receiver
  wakes: WakeSource
}

export function createInbox(parts: InboxParts): Inbox {
  const leases = createLeases(parts)
  let run: Run | undefined
  let kickOwed = false
  let ending: Promise<unknown> = Promise.resolve()
  const inTime = (): Promise<unknown> => settledWithin(parts.ports.clock, ending, stopMs)
  return {
    start(queueId) {
      run ??= startRun(parts, leases, queueId)
    },
    next() {
      if (kickOwed) run?.receiver.kick()
      kickOwed = false
      return run?.receiver.next() ?? Promise.resolve(undefined)
    },
    settling: leases.settling,
    release: leases.release,
    kick(when) {
      if (when === 'now') run?.receiver.kick()
      else kickOwed = true
    },
    async stop() {
      if (run !== undefined) ending = Promise.all([ending, endRun(parts, leases, run)])
      run = undefined
      await inTime()
    },
    async close() {
      await inTime()
      leases.close()
    },
  }
}

function startRun(parts: InboxParts, leases: Leases, queueId: number): Run {
  const wakes = parts.wakes(`q${queueId}`)
  const receiver = createReceiver(parts.db, parts.queue, {
    ports: parts.ports,
    wakes,
    // the wakes poll by themselves where they must
    pollMs: null,
    // what the bus does not wait for is better off with another process
    prefetch: 0,
    leaseMs: parts.leaseMs,
    onClaimed: leases.hold,
  })
  return { receiver, wakes }
}

async function endRun({ settler }: InboxParts, leases: Leases, { receiver, wakes }: Run): Promise<void> {
  const left = await receiver.stop()
  wakes.close()
  await Promise.all(
    left.map(async (message) => {
      leases.settling(message)
      await settler.settle(message, { kind: 'return' })
      leases.release(message)
    }),
  )
}

interface Leases {
  hold(messages: readonly ClaimedMessage[], claimedAt: number): void
  settling(message: ClaimedMessage): void
  release(message: ClaimedMessage): void
  close(): void
}

/** Keeps leases alive, but none longer than a message may be handled. */
function createLeases({ db, queue, maxHandlingMs, ports }: InboxParts): Leases {
  const { clock, log } = ports
  const limits = new Map<ClaimedMessage, TimerHandle>()
  const forget = (message: ClaimedMessage): void => {
    const limit = limits.get(message)
    if (limit !== undefined) clock.clearTimeout(limit)
    limits.delete(message)
  }
  const onLost = (message: ClaimedMessage): void => {
    forget(message)
    log.warn({ queue, message: message.id }, 'The lease of a message is lost.')
  }
  const keeper = createLeaseKeeper({ db, queue, ports, onLost })
  const giveUp = (message: ClaimedMessage): void => {
    limits.delete(message)
    keeper.release(message)
    log.warn({ queue, message: message.id }, 'A message was not settled in time; its lease runs out.')
  }
  return {
    hold(messages, claimedAt) {
      keeper.hold(messages, claimedAt)
      for (const message of messages)
        limits.set(
          message,
          clock.setTimeout(() => giveUp(message), maxHandlingMs),
        )
    },
    settling: keeper.settling,
    release(message) {
      forget(message)
      keeper.release(message)
    },
    close() {
      for (const message of limits.keys()) forget(message)
      keeper.close()
    },
  }
}
