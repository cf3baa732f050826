import type { StoredEvent } from '../../streams/event.ts'
import { createLinkedList, type Link, type LinkedList } from '../linked-list.ts'
import type { WindowEntry } from './window.ts'

/** One event on its way to one webhook. */
export interface Item {
  event: StoredEvent
  /** The ordering unit: nothing in it is sent before what comes earlier is through. Null: unordered. */
  unit: string | null
  /** Attempts made so far. */
  attempts: number
  /** Its place in the window; null when it came from `deliveries`. */
  entry: WindowEntry | null
  /** It has a row in `deliveries`. */
  hasRow: boolean
}

interface Unit {
  /** What stands behind the one that is being sent; null: nothing ever did. */
  queue: LinkedList<Item> | null
  active: boolean
  /** Something of it is in `deliveries`: what comes later has to go there too. */
  troubled: boolean
  /** Its head is gone: the rest is to be loaded, at once or when the next flush stands. */
  reload: 'no' | 'wanted' | 'after-flush' | 'underway'
  /** Something came in trouble while the rest was being loaded, which may not show it. */
  grew: boolean
}

/** The ordering of one webhook's events: which may be sent now, which wait, and for what (W3, W4). */
export interface Units {
  /** Takes an event in stream order; `blocked` ones have to be recorded, their unit is in trouble. */
  place(item: Item): 'accepted' | 'blocked'
  /** The next item that may be sent; it counts as being sent from now on. */
  next(): Item | undefined
  /** As `next`, of those taken from the stream before an offset. */
  nextBelow(offset: number): Item | undefined
  hasReadyBelow(offset: number): boolean
  /** The item is through, delivered or dead. */
  left(item: Item): void
  /** The item goes to `deliveries`, and so must those that are returned: they stood behind it. */
  troubled(item: Item): Item[]
  /** Units whose rest is to be loaded; until `loaded`, a `reload…` or `waits` that is underway. */
  takeReloads(ready: (unit: string) => boolean, limit?: number): string[]
  /** Load the rest of the unit as soon as may be. */
  reloadSoon(unit: string): void
  /** Load the rest of the unit once a flush has written what there is of it. */
  reloadAfterFlush(unit: string): void
  /** A flush stands. */
  flushed(): void
  /** The unit's head is gone, and what comes next is not known: who adds to it sees to a new head. */
  isHeadless(unit: string): boolean
  /** The head of the unit waits for a later time: nothing of it is in hand. */
  waits(unit: string): void
  /** Nothing of the unit is queued, being sent or waiting to be loaded. */
  isAtRest(unit: string): boolean
  /** What stands in a unit in trouble; nothing, and nothing was added meanwhile: the trouble is over. */
  loaded(unit: string, items: readonly Item[]): void
  /** Forgets what was accepted and not yet sent. */
  clear(): void
  readonly hasReady: boolean
  readonly reloadsWanted: boolean
  /** Units in trouble. */
  readonly troubledCount: number
}

/** The ordering unit of an event: the whole stream, its key, or none. */
export function unitOf(ordering: 'stream' | 'key' | 'none', event: StoredEvent): string | null {
  if (ordering === 'stream') return ''
  return ordering === 'key' ? event.key : null
}

/** An event just taken from the stream. */
export function itemOf(event: StoredEvent, ordering: 'stream' | 'key' | 'none', entry: WindowEntry): Item {
  return { event, unit: unitOf(ordering, event), attempts: 0, entry, hasRow: false }
}

/** @param inTrouble the units that have rows in `deliveries` at the start */
export function createUnits(inTrouble: readonly string[]): Units {
  return new OrderedUnits(inTrouble)
}

class OrderedUnits implements Units {
  readonly #units = new Map<string, Unit>()
  readonly #wanted = new Set<string>()
  readonly #afterFlush = new Set<string>()
  readonly #ready = createLinkedList<Item>()
  /** Asked for with every send, so it is not counted anew. */
  troubledCount = 0

  constructor(inTrouble: readonly string[]) {
    for (const name of inTrouble) this.#units.set(name, createUnit())
    for (const unit of this.#units.values()) this.#trouble(unit)
  }

  place(item: Item): 'accepted' | 'blocked' {
    if (item.unit === null) {
      this.#ready.add(item)
      return 'accepted'
    }
    let unit = this.#units.get(item.unit)
    if (unit === undefined) this.#units.set(item.unit, (unit = createUnit()))
    if (unit.troubled) {
      unit.grew = true
      return 'blocked'
    }
    if (unit.active) (unit.queue ??= createLinkedList()).add(item)
    else {
      unit.active = true
      this.#ready.add(item)
    }
    return 'accepted'
  }

  next(): Item | undefined {
    return this.#ready.take()
  }

  nextBelow(offset: number): Item | undefined {
    const link = this.#firstBelow(offset)
    if (link !== null) this.#ready.remove(link)
    return link?.value
  }

  hasReadyBelow(offset: number): boolean {
    return this.#firstBelow(offset) !== null
  }

  left({ unit: name }: Item): void {
    const unit = name === null ? undefined : this.#units.get(name)
    if (name === null || unit === undefined) return
    unit.active = false
    if (hasQueued(unit)) this.#schedule(unit)
    else if (unit.troubled) this.#setReload(name, 'wanted')
    else if (unit.reload === 'no') this.#units.delete(name)
    else this.#end(name)
  }

  troubled(item: Item): Item[] {
    const unit = item.unit === null ? undefined : this.#units.get(item.unit)
    if (unit === undefined) return []
    unit.active = false
    this.#trouble(unit)
    const behind: Item[] = []
    for (let next = unit.queue?.take(); next !== undefined; next = unit.queue?.take()) behind.push(next)
    return behind
  }

  takeReloads(isReady: (unit: string) => boolean, limit = Infinity): string[] {
    const names = [...this.#wanted].filter(isReady).slice(0, limit)
    for (const name of names) {
      this.#setReload(name, 'underway')
      this.#units.get(name)!.grew = false
    }
    return names
  }

  reloadSoon(name: string): void {
    this.#setReload(name, 'wanted')
  }

  reloadAfterFlush(name: string): void {
    this.#setReload(name, 'after-flush')
  }

  flushed(): void {
    if (this.#afterFlush.size === 0) return
    for (const name of [...this.#afterFlush]) this.#setReload(name, 'wanted')
  }

  isHeadless(name: string): boolean {
    return (this.#units.get(name)?.reload ?? 'no') !== 'no'
  }

  waits(name: string): void {
    this.#setReload(name, 'no')
  }

  isAtRest(name: string): boolean {
    const unit = this.#units.get(name)
    return unit === undefined || (!unit.active && unit.reload === 'no' && !hasQueued(unit))
  }

  loaded(name: string, items: readonly Item[]): void {
    if (items.length === 0) {
      const grew = this.#units.get(name)?.grew === true
      return grew ? this.#setReload(name, 'wanted') : this.#end(name)
    }
    const unit = this.#units.get(name) ?? createUnit()
    this.#units.set(name, unit)
    this.#setReload(name, 'no')
    this.#trouble(unit)
    unit.queue = createLinkedList()
    for (const item of items) unit.queue.add(item)
    this.#schedule(unit)
  }

  clear(): void {
    while (this.#ready.take() !== undefined);
    for (const [name, unit] of this.#units) {
      unit.queue = null
      unit.active = false
      if (!unit.troubled) this.#end(name)
    }
  }

  get hasReady(): boolean {
    return this.#ready.size > 0
  }

  get reloadsWanted(): boolean {
    return this.#wanted.size + this.#afterFlush.size > 0
  }

  #trouble(unit: Unit): void {
    if (!unit.troubled) this.troubledCount++
    unit.troubled = true
  }

  #schedule(unit: Unit): void {
    const item = unit.active ? undefined : unit.queue?.take()
    if (item === undefined) return
    unit.active = true
    this.#ready.add(item)
  }

  #setReload(name: string, reload: Unit['reload']): void {
    const unit = this.#units.get(name)
    if (unit === undefined || unit.reload === reload) return
    unit.reload = reload
    this.#wanted.delete(name)
    this.#afterFlush.delete(name)
    if (reload === 'wanted') this.#wanted.add(name)
    if (reload === 'after-flush') this.#afterFlush.add(name)
  }

  #end(name: string): void {
    this.#setReload(name, 'no')
    if (this.#units.get(name)?.troubled === true) this.troubledCount--
    this.#units.delete(name)
  }

  #firstBelow(offset: number): Link<Item> | null {
    for (let link = this.#ready.first; link !== null; link = link.next) {
      const { entry } = link.value
      if (entry !== null && entry.offset < offset) return link
    }
    return null
  }
}

function hasQueued({ queue }: Unit): boolean {
  return queue !== null && queue.size > 0
}

function createUnit(): Unit {
  return { queue: null, active: false, troubled: false, reload: 'no', grew: false }
}
