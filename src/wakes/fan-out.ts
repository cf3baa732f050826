import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { createDeferred } from './deferred.ts'
import { createMailbox, type ListenValue, type Mailbox } from './mailbox.ts'

/** A burst of this many fits before a listener that is busy for a moment is told that it lagged. */
export const defaultBuffer = 1024

/** Options of {@link FanOut.listen}. */
export interface ListenOptions {
  /** How many values wait for a slow reader before the oldest are dropped; at least 1, default 1024. */
  buffer?: number
  /** Ends the listener. */
  signal?: AbortSignal
}

/** One reader of one channel. Leaving its `for await` loop ends it. */
export interface Listener extends AsyncIterableIterator<ListenValue> {
  readonly channel: string
  /**
   * Resolves once the database's LISTEN stands for the first time: what is sent from then on arrives.
   * Rejects with LISTEN_UNSUPPORTED when this address lets no notification through, STORE_CLOSED and
   * ABORTED when the listener ended before, or the database's reason for refusing the channel.
   */
  readonly ready: Promise<void>
  /** Ends it and drops what is buffered. */
  close(): void
}

/** Deals what one connection receives out to any number of listeners, none of which waits for another. */
export interface FanOut {
  listen(channel: string, options?: ListenOptions): Listener
  /** The channels that have a listener. */
  channels(): string[]
  deliver(channel: string, payload: string): void
  /** The LISTENs of all channels stand: resolves every `ready` still open. */
  standing(): void
  /** The database refuses a channel: ends its listeners with the error. */
  refuse(channel: string, error: unknown): void
  /** No LISTEN will stand for now: fails every `ready` still open; the listeners stay. */
  unavailable(error: unknown): void
  /** Tells every listener that the connection was lost and stands again (N2). */
  reconnected(): void
  close(): void
}

interface Member {
  listener: Listener
  mailbox: Mailbox
  ready: { resolve(): void; reject(error: unknown): void }
}

/** @param onChange called when a listener came, or a channel lost its last one */
export function createFanOut(onChange: () => void): FanOut {
  const byChannel = new Map<string, Set<Member>>()
  /** Whose `ready` is open. Also a second listener waits: its channel may be on the way out just now. */
  const waiting = new Set<Member>()
  const everyone = (): Member[] => Array.from(byChannel.values(), (members) => Array.from(members)).flat()
  const leave = (channel: string, member: Member): void => {
    waiting.delete(member)
    const members = byChannel.get(channel)
    if (!members?.delete(member) || members.size > 0) return
    byChannel.delete(channel)
    onChange()
  }
  const join = (channel: string, member: Member): void => {
    const members = byChannel.get(channel) ?? new Set()
    byChannel.set(channel, members.add(member))
    waiting.add(member)
    onChange()
  }
  const endAll = (members: Iterable<Member>, readyError: unknown, error?: unknown): void => {
    for (const member of Array.from(members)) {
      member.ready.reject(readyError)
      member.mailbox.end(error)
    }
  }
  return {
    listen(channel, options = {}) {
      const member = createMember(channel, options, () => leave(channel, member))
      if (options.signal?.aborted) member.listener.close()
      else join(channel, member)
      return member.listener
    },
    channels: () => [...byChannel.keys()],
    deliver(channel, payload) {
      for (const { mailbox } of byChannel.get(channel) ?? [])
        mailbox.put({ kind: 'notification', channel, payload })
    },
    standing() {
      for (const { ready } of waiting) ready.resolve()
      waiting.clear()
    },
    refuse: (channel, error) => endAll(byChannel.get(channel) ?? [], error, error),
    unavailable(error) {
      for (const { ready } of waiting) ready.reject(error)
      waiting.clear()
    },
    reconnected() {
      for (const { mailbox } of everyone()) mailbox.put({ kind: 'reconnected' })
    },
    close: () => endAll(everyone(), new MillraceError('STORE_CLOSED', 'the forwarder was closed')),
  }
}

function createMember(channel: string, options: ListenOptions, onLeave: () => void): Member {
  const { buffer = defaultBuffer, signal } = options
  if (!Number.isSafeInteger(buffer) || buffer < 1)
    throw invalidInput('buffer', 'must be a whole number from 1 up')
  const ready = createDeferred<void>()
  ready.promise.catch(() => {}) // whoever does not ask for it is not to be told by a crash
  const close = (): void => mailbox.drop()
  const mailbox = createMailbox(buffer, () => {
    signal?.removeEventListener('abort', close)
    ready.reject(new MillraceError('ABORTED', 'the listener was ended'))
    onLeave()
  })
  const listener: Listener = {
    channel,
    ready: ready.promise,
    close,
    next: () => mailbox.next(),
    return: () => mailbox.return(),
    [Symbol.asyncIterator]: () => listener,
  }
  signal?.addEventListener('abort', close)
  return { listener, mailbox, ready }
}
