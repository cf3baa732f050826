/** What a listener of a channel is told. */
export type ListenValue =
  | { kind: 'notification'; channel: string; payload: string }
  /** The connection was lost and stands again: whatever was sent meanwhile never comes. */
  | { kind: 'reconnected' }
  /** This listener was too slow: the oldest `missed` notifications of its buffer were dropped here. */
  | { kind: 'lagged'; missed: number }

/** A bounded buffer between the connection and one reader, which never makes the writer wait. */
export interface Mailbox extends AsyncIterableIterator<ListenValue> {
  put(value: ListenValue): void
  /** Ends it for the reader, after what is buffered; with an error, that is thrown at the end. */
  end(error?: unknown): void
  /** Ends it at once and drops what is buffered. */
  drop(): void
  return(): Promise<IteratorResult<ListenValue>>
}

type Result = IteratorResult<ListenValue>
interface Waiter {
  resolve(result: Result): void
  reject(error: unknown): void
}

const done: Result = { done: true, value: undefined }

/**
 * @param capacity how many values it keeps; one more drops the oldest and counts it
 * @param onEnd called once, however it ends
 */
export function createMailbox(capacity: number, onEnd: () => void): Mailbox {
  const buffer = createBuffer(capacity)
  const waiters: Waiter[] = []
  let state: 'open' | 'ended' | 'dropped' = 'open'
  let failure: unknown
  // a failure is thrown once, then the iterator is done like any other
  const settleEnd = (waiter: Waiter): void => {
    const error = failure
    failure = undefined
    if (error === undefined) waiter.resolve(done)
    else waiter.reject(error)
  }
  const finish = (next: typeof state): void => {
    const first = state === 'open'
    state = next
    for (const waiter of waiters.splice(0)) settleEnd(waiter)
    if (first) onEnd()
  }
  const mailbox: Mailbox = {
    put(value) {
      if (state !== 'open') return
      const waiter = waiters.shift()
      if (waiter === undefined) buffer.put(value)
      else waiter.resolve({ done: false, value })
    },
    end(error) {
      if (state !== 'open') return
      failure = error
      finish('ended')
    },
    drop() {
      failure = undefined
      buffer.clear()
      finish('dropped')
    },
    next: () =>
      new Promise((resolve, reject) => {
        const value = buffer.take()
        if (value !== undefined) resolve({ done: false, value })
        else if (state === 'open') waiters.push({ resolve, reject })
        else settleEnd({ resolve, reject })
      }),
    async return() {
      mailbox.drop()
      return done
    },
    [Symbol.asyncIterator]: () => mailbox,
  }
  return mailbox
}

interface Buffer {
  put(value: ListenValue): void
  take(): ListenValue | undefined
  clear(): void
}

/** Drops the oldest when full. A `reconnected` among the dropped is owed, not lost (N2). */
function createBuffer(capacity: number): Buffer {
  let items: ListenValue[] = []
  let head = 0
  let missed = 0
  let owesReconnected = false
  const shift = (): ListenValue | undefined => {
    const value = items[head]
    if (value === undefined) return undefined
    head += 1
    // cut off the read part only when it is half of all: constant cost per value
    if (head * 2 >= items.length) {
      items = items.slice(head)
      head = 0
    }
    return value
  }
  return {
    put(value) {
      const last = items.at(-1)
      if (value.kind === 'reconnected' && last?.kind === 'reconnected') return
      if (items.length - head >= capacity) {
        if (shift()?.kind === 'reconnected') owesReconnected = true
        else missed += 1
      }
      items.push(value)
    },
    take() {
      if (missed > 0) {
        const lagged: ListenValue = { kind: 'lagged', missed }
        missed = 0
        return lagged
      }
      if (owesReconnected) {
        owesReconnected = false
        return { kind: 'reconnected' }
      }
      return shift()
    },
    clear() {
      items = []
      head = missed = 0
      owesReconnected = false
    },
  }
}
