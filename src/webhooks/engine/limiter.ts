import type { Clock } from '../../ports.ts'
import { createLinkedList, type Link, type LinkedList } from '../linked-list.ts'
import { createAlarm } from './alarm.ts'
import { unlimited, type Allowance } from './allowance.ts'

/** A host as the limiter keeps it, so that it is looked up once for thousands of sends. */
export interface Host {
  readonly name: string
  /** Lanes that hold it. */
  users: number
  /** Places taken that count. */
  taken: number
  /** Who waits for one. */
  readonly waiting: LinkedList<() => void>
}

/** A place that a send has taken. */
export interface Place {
  readonly host: Host
  readonly since: number
  /** Where it stands among those that count against the bounds; null: it counts no longer. */
  link: Link<Place> | null
}

/** Bounds how many sends run at once, in all and to each host. */
export interface Limiter {
  /** The host of that name, until `release`. */
  hold(name: string): Host
  release(host: Host): void
  /** Takes a place for a send to the host; null when none is free. */
  tryEnter(host: Host): Place | null
  leave(place: Place): void
  /** Calls back once, when a place for the host may have come free; who has waited longest first. */
  onFree(host: Host, callback: () => void): void
  /** Places that are taken, also by sends that no longer count. */
  readonly taken: number
  /** No place will come free any more: the platform's requests are spent. */
  readonly spent: boolean
}

/** What {@link createLimiter} takes. */
export interface LimiterOptions {
  clock: Clock
  /** Sends at once, whatever their host. Default 256: more only queues in the kernel. */
  total?: number
  /** Sends at once to one host. Default 128. */
  perHost?: number
  /** Every send is taken off it, and none begins once it is low. */
  allowance?: Allowance
}

/** A send that takes longer no longer counts: endpoints that hang cannot hold up all others (W4). */
const slowMs = 1_000
/** So many slow ones are let be; beyond, the bounds hold for everyone. */
const maxSlow = 4_096

export function createLimiter(options: LimiterOptions): Limiter {
  const { clock, total = 256, perHost = 128, allowance = unlimited } = options
  const hosts = new Map<string, Host>()
  /** Those for which somebody waits. */
  const wanted = new Set<Host>()
  /** Those that count, in the order in which they were taken. */
  const places = createLinkedList<Place>()
  let slow = 0
  const alarm = createAlarm(clock, () => {
    if (discountSlow()) wakeAll()
  })

  const isFull = (host: Host): boolean => places.size >= total || host.taken >= perHost

  function discount(place: Place): void {
    if (place.link !== null) places.remove(place.link)
    place.link = null
    place.host.taken--
    forget(place.host)
  }

  function forget({ name, users, taken }: Host): void {
    if (users === 0 && taken === 0) hosts.delete(name)
  }

  /** A platform that counts requests counts connections too: there the bounds hold for everyone. */
  function discountSlow(): boolean {
    if (allowance !== unlimited) return false
    const before = slow
    for (let first = places.first; first !== null; first = places.first) {
      const left = first.value.since + slowMs - clock.now()
      if (left > 0) {
        if (wanted.size > 0) alarm.ring(left)
        break
      }
      if (slow >= maxSlow) break
      discount(first.value)
      slow++
    }
    return slow > before
  }

  /**
   * Wakes as many as there are places: a thousand that fight over one would cost a thousand looks each time. Whoever
   * wants another place after that stands at the end.
   */
  function wake(host: Host, count: number): void {
    const { waiting } = host
    if (waiting.size === 0) return
    for (let left = Math.min(count, waiting.size); left > 0 && !isFull(host); left--) waiting.take()?.()
    if (waiting.size === 0) wanted.delete(host)
  }

  function wakeAll(): void {
    for (const host of [...wanted]) wake(host, Infinity)
  }

  return {
    hold(name) {
      const host = hosts.get(name) ?? { name, users: 0, taken: 0, waiting: createLinkedList() }
      hosts.set(name, host)
      host.users++
      return host
    },
    release(host) {
      host.users--
      forget(host)
    },
    tryEnter(host) {
      if (allowance.low || (isFull(host) && !(discountSlow() && !isFull(host)))) return null
      if (!allowance.spend()) return null
      const place: Place = { host, since: clock.now(), link: null }
      place.link = places.add(place)
      host.taken++
      return place
    },
    leave(place) {
      const wasFull = places.size >= total
      if (place.link !== null) discount(place)
      else slow--
      // with nothing on its way nobody else would wake those who wait
      if (places.size + slow === 0) return wakeAll()
      wake(place.host, Math.min(perHost - place.host.taken, total - places.size))
      const other = wasFull ? [...wanted].find((host) => host !== place.host) : undefined
      if (other !== undefined) wake(other, 1)
    },
    get taken() {
      return places.size + slow
    },
    get spent() {
      return allowance.low
    },
    onFree(host, callback) {
      host.waiting.add(callback)
      wanted.add(host)
      discountSlow()
    },
  }
}

/** Returns a function that waits for a place at the host, once at a time, and calls back when it is worth another try. */
export function queueUpFor(limiter: Limiter, host: Host, onFree: () => void): () => void {
  let waits = false
  const call = (): void => {
    waits = false
    onFree()
  }
  return () => {
    if (waits) return
    waits = true
    limiter.onFree(host, call)
  }
}
