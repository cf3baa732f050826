import type { Db } from '../../db/port.ts'
import { MillraceError } from '../../errors/millrace-error.ts'
import type { Clock, Ports, TimerHandle } from '../../ports.ts'
import type { ClaimedMessage } from '../message.ts'
import { extendMessages } from '../settle-messages.ts'

/** How soon a heartbeat that failed is tried again. */
const againMs = 1000

/** A message in hand: from its claim until it is settled. */
export interface InHand {
  readonly message: ClaimedMessage
  /** Aborts, with LEASE_LOST for a reason, when the lease is lost. */
  readonly signal: AbortSignal
}

/** Keeps the leases of messages in hand alive, all due ones with one statement. */
export interface LeaseKeeper {
  /** Takes messages in hand. @param claimedAt local time before the claim was sent */
  hold(messages: readonly ClaimedMessage[], claimedAt: number): void
  /** Undefined when the lease is lost, or the message released. */
  inHand(message: ClaimedMessage): InHand | undefined
  /**
   * The message is about to be settled, and its lease kept alive until that is answered; but where a heartbeat finds
   * it gone, the settling was faster, or will tell of the loss itself.
   */
  settling(message: ClaimedMessage): void
  /** The message is settled or given back: forget it. */
  release(message: ClaimedMessage): void
  /** How many messages are in hand. */
  count(): number
  /** Aborts the signals of all that is in hand. */
  abortAll(reason: unknown): void
  /** Ends the heartbeat; what is in hand is left to its lease. */
  close(): void
}

interface Entry extends InHand {
  abort(reason: unknown): void
  /** Local time by which the lease may be over. */
  endsAt: number
  /** Local time at which to extend it: half of it has passed. */
  extendAt: number
  settling: boolean
}

interface KeeperParts {
  db: Db
  queue: string
  ports: Pick<Ports, 'clock' | 'log'>
  onLost(message: ClaimedMessage): void
}

/** @param parts `onLost` is called when a lease turns out to be lost */
export function createLeaseKeeper(parts: KeeperParts): LeaseKeeper {
  const { clock } = parts.ports
  const entries = new Map<number, Entry>()
  const timer = createTimer(clock, () => void beat())
  let closed = false

  const arm = (more: Iterable<Entry>): void => {
    let next = Infinity
    for (const entry of more) next = Math.min(next, entry.extendAt)
    if (!closed) timer.by(next)
  }
  const entryOf = ({ id, lease }: ClaimedMessage): Entry | undefined => {
    const entry = entries.get(id)
    return entry?.message.lease === lease ? entry : undefined
  }
  const lose = (entry: Entry): void => {
    entries.delete(entry.message.id)
    if (entry.settling) return
    entry.abort(new MillraceError('LEASE_LOST', `the lease of message ${entry.message.id} is lost`))
    parts.onLost(entry.message)
  }
  async function beat(): Promise<void> {
    const now = clock.now()
    const due = [...entries.values()].filter((entry) => entry.extendAt <= now)
    await extend(parts, due, (entry) => entries.get(entry.message.id) === entry && lose(entry))
    arm(entries.values())
  }
  return {
    hold(messages, claimedAt) {
      const held = messages.map((message) => new LazyEntry(message, claimedAt))
      for (const entry of held) entries.set(entry.message.id, entry)
      arm(held)
    },
    inHand: entryOf,
    settling(message) {
      const entry = entryOf(message)
      if (entry !== undefined) entry.settling = true
    },
    release(message) {
      if (entryOf(message) !== undefined) entries.delete(message.id)
      if (entries.size === 0) timer.stop()
    },
    count: () => entries.size,
    abortAll(reason) {
      for (const entry of entries.values()) entry.abort(reason)
    },
    close() {
      closed = true
      entries.clear()
      timer.stop()
    },
  }
}

/** Few handlers look at their signal, and one is dearer than all else about a message: made when asked for. */
class LazyEntry implements Entry {
  readonly message: ClaimedMessage
  endsAt = 0
  extendAt = 0
  settling = false
  #controller: AbortController | undefined

  constructor(message: ClaimedMessage, claimedAt: number) {
    this.message = message
    renew(this, claimedAt)
  }
  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal
  }
  abort(reason: unknown): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}

function renew(entry: Entry, from: number): void {
  entry.endsAt = from + entry.message.leaseMs
  entry.extendAt = from + entry.message.leaseMs / 2
}

/**
 * One heartbeat. Where the database cannot be asked, a lease counts as lost only when its time has
 * passed by the local clock too; until then it is tried again.
 */
async function extend(parts: KeeperParts, due: Entry[], lose: (entry: Entry) => void): Promise<void> {
  const { clock, log } = parts.ports
  const asked = clock.now()
  for (const [leaseMs, entries] of groupByLease(due)) {
    try {
      const held = await extendMessages(
        parts.db,
        parts.queue,
        entries.map((entry) => entry.message),
        { leaseMs },
      )
      entries.forEach((entry, index) => (held[index] ? renew(entry, asked) : lose(entry)))
    } catch (error) {
      log.warn({ queue: parts.queue, messages: entries.length, err: error }, 'Could not extend leases.')
      const now = clock.now()
      for (const entry of entries) {
        if (entry.endsAt <= now) lose(entry)
        else entry.extendAt = Math.min(now + againMs, entry.endsAt)
      }
    }
  }
}

/** Nearly always one group: a worker's messages are claimed for one time, or sent with one. */
function groupByLease(entries: Entry[]): Map<number, Entry[]> {
  const groups = new Map<number, Entry[]>()
  for (const entry of entries) {
    const group = groups.get(entry.message.leaseMs)
    if (group === undefined) groups.set(entry.message.leaseMs, [entry])
    else group.push(entry)
  }
  return groups
}

/** One timer that is moved, and never to a later time than it was set for. */
function createTimer(clock: Clock, fn: () => void): { by(time: number): void; stop(): void } {
  let handle: TimerHandle | undefined
  let set = Infinity
  const stop = (): void => {
    if (handle !== undefined) clock.clearTimeout(handle)
    handle = undefined
    set = Infinity
  }
  return {
    stop,
    by(time) {
      if (time >= set) return
      stop()
      set = time
      handle = clock.setTimeout(
        () => {
          stop()
          fn()
        },
        Math.max(0, time - clock.now()),
      )
    },
  }
}
