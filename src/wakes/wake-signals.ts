import type { Clock } from '../ports.ts'

/**
 * What a wake names: a stream (`s` and its number), a queue (`q` and its number), a webhook (`w` and its id)
 * or the schedules' timers (`t`).
 */
export type WakeSubject = `s${number}` | `q${number}` | `wwh_${string}` | 't'

/** Which wakes concern a subscriber. */
export type WakeFilter = 'all' | readonly WakeSubject[]

/** The payloads of the internal channel; anything else on it is none of ours. */
export function isWakeSubject(payload: string): payload is WakeSubject {
  return /^(?:t|[sq]\d{1,19}|wwh_[A-Za-z0-9]{1,64})$/.test(payload)
}

/**
 * A sticky flag: something the subscriber asked for may have changed. However many wakes come while
 * nobody waits, they are one, so it costs the same at any rate. It is also raised whenever wakes may
 * have been missed. A wake is a hint: read the rows.
 */
export interface WakeSignal {
  /** Whether the flag is up; lowers it. Lower it *before* reading, or a wake during the read is lost. */
  take(): boolean
  /** Calls `fn` on every raise, and on the end; returns the function that ends that. */
  onRaise(fn: () => void): () => void
  /**
   * Resolves `wake` when the flag is up (and lowers it), at once if it is already; `timeout` after
   * `timeoutMs` (default: never); `aborted` when the signal aborts or the subscription ends.
   */
  wait(options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<'wake' | 'timeout' | 'aborted'>
  /** The subscription ended. */
  readonly closed: boolean
  /** Ends the subscription. */
  close(): void
}

/** The subscribers to wakes, found by what concerns them. */
export interface WakeRegistry {
  subscribe(filter: WakeFilter, options?: { signal?: AbortSignal }): WakeSignal
  /** Raises the flag of whom the subject concerns, or of everyone. */
  raise(subject: WakeSubject | 'all'): void
  /** Calls `fn` with each subject as it is raised; returns the function that ends that. */
  onRaise(fn: (subject: WakeSubject | 'all') => void): () => void
  close(): void
}

export function createWakeRegistry(clock: Clock): WakeRegistry {
  const everything = new Set<OwnedSignal>()
  const bySubject = new Map<WakeSubject, Set<OwnedSignal>>()
  const members = new Set<OwnedSignal>()
  const listeners = new Set<(subject: WakeSubject | 'all') => void>()
  const forget = (signal: OwnedSignal, filter: WakeFilter): void => {
    members.delete(signal)
    if (filter === 'all') everything.delete(signal)
    else for (const subject of filter) removeFrom(bySubject, subject, signal)
  }
  return {
    subscribe(filter, options = {}) {
      const kept: WakeFilter = filter === 'all' ? 'all' : [...filter]
      const signal = createWakeSignal(clock, options.signal, () => forget(signal, kept))
      if (signal.closed) return signal
      members.add(signal)
      if (kept === 'all') everything.add(signal)
      else for (const subject of kept) addTo(bySubject, subject, signal)
      return signal
    },
    raise(subject) {
      const concerned = subject === 'all' ? [members] : [everything, bySubject.get(subject) ?? []]
      for (const group of concerned) for (const signal of group) signal.raise()
      for (const listener of [...listeners]) listener(subject)
    },
    onRaise(fn) {
      // wrapped, so that the same function given twice is two listeners
      const listener = (subject: WakeSubject | 'all'): void => fn(subject)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close() {
      for (const signal of Array.from(members)) signal.close()
      listeners.clear()
    },
  }
}

function addTo<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const set = map.get(key) ?? new Set()
  map.set(key, set.add(value))
}

function removeFrom<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const set = map.get(key)
  set?.delete(value)
  if (set?.size === 0) map.delete(key)
}

interface OwnedSignal extends WakeSignal {
  raise(): void
}

function createWakeSignal(clock: Clock, signal: AbortSignal | undefined, onClose: () => void): OwnedSignal {
  let raised = false
  let closed = false
  const listeners = new Set<() => void>()
  const tell = (): void => {
    for (const listener of Array.from(listeners)) listener()
  }
  const owned: OwnedSignal = {
    get closed() {
      return closed
    },
    take() {
      const was = raised
      raised = false
      return was
    },
    raise() {
      raised = true
      tell()
    },
    onRaise(fn) {
      const listener = (): void => fn()
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    wait: (options = {}) => waitOn(owned, clock, options),
    close() {
      if (closed) return
      closed = true
      signal?.removeEventListener('abort', owned.close)
      onClose()
      tell()
    },
  }
  if (signal?.aborted) closed = true
  else signal?.addEventListener('abort', owned.close)
  return owned
}

function waitOn(
  wake: WakeSignal,
  clock: Clock,
  options: { signal?: AbortSignal; timeoutMs?: number },
): Promise<'wake' | 'timeout' | 'aborted'> {
  const { signal, timeoutMs } = options
  return new Promise((resolve) => {
    const settle = (outcome: 'wake' | 'timeout' | 'aborted'): void => {
      off()
      signal?.removeEventListener('abort', check)
      if (timer !== undefined) clock.clearTimeout(timer)
      resolve(outcome)
    }
    const check = (): void => {
      if (signal?.aborted || wake.closed) settle('aborted')
      else if (wake.take()) settle('wake')
    }
    const off = wake.onRaise(check)
    const timer = timeoutMs === undefined ? undefined : clock.setTimeout(() => settle('timeout'), timeoutMs)
    signal?.addEventListener('abort', check)
    check()
  })
}
