import type { StoredEvent } from '../../streams/event.ts'
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
  /** What stands behind the one that is being sent. */
  queue: Item[]
  active: boolean
  /** Something of it is in `deliveries`: what comes later has to go there too. */
  troubled: boolean
  /** Its head is gone: after the next flush the rest is loaded. */
  reload: 'no' | 'wanted' | 'underway'
}

/** The ordering of one webhook's events: which may be sent now, which wait, and for what (W3, W4). */
export interface Units {
  /** Takes an event in stream order; `blocked` ones have to be recorded, their unit is in trouble. */
  place(item: Item): 'accepted' | 'blocked'
  /** The next item that may be sent; it counts as being sent from now on. */
  next(): Item | undefined
  /** The item is through, delivered or dead. */
  left(item: Item): void
  /** The item goes to `deliveries`, and so must those that are returned: they stood behind it. */
  troubled(item: Item): Item[]
  /** Units whose rest is to be loaded; until `loaded`, `reloadLater` or `waits` that is underway. */
  takeReloads(ready: (unit: string) => boolean): string[]
  reloadLater(unit: string): void
  /** The head of the unit waits for a later time: nothing of it is in hand. */
  waits(unit: string): void
  /** Nothing of the unit is queued, being sent or waiting to be loaded. */
  isAtRest(unit: string): boolean
  /** What stands in a unit in trouble; nothing: the trouble is over. */
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

/** @param inTrouble the units that have rows in `deliveries` at the start */
export function createUnits(inTrouble: readonly string[]): Units {
  const units = new Map<string, Unit>()
  let ready: Item[] = []
  for (const name of inTrouble) units.set(name, { queue: [], active: false, troubled: true, reload: 'no' })

  function schedule(unit: Unit): void {
    const item = unit.active ? undefined : unit.queue.shift()
    if (item === undefined) return
    unit.active = true
    ready.push(item)
  }

  return {
    place(item) {
      if (item.unit === null) {
        ready.push(item)
        return 'accepted'
      }
      let unit = units.get(item.unit)
      if (unit === undefined)
        units.set(item.unit, (unit = { queue: [], active: false, troubled: false, reload: 'no' }))
      if (unit.troubled) return 'blocked'
      unit.queue.push(item)
      schedule(unit)
      return 'accepted'
    },
    next: () => ready.shift(),
    left(item) {
      if (item.unit === null) return
      const unit = units.get(item.unit)
      if (unit === undefined) return
      unit.active = false
      if (unit.queue.length > 0) schedule(unit)
      else if (unit.troubled) unit.reload = 'wanted'
      else units.delete(item.unit)
    },
    troubled(item) {
      if (item.unit === null) return []
      const unit = units.get(item.unit)
      if (unit === undefined) return []
      unit.active = false
      unit.troubled = true
      const behind = unit.queue
      unit.queue = []
      return behind
    },
    takeReloads(isReady) {
      const names = [...units]
        .filter(([name, unit]) => unit.reload === 'wanted' && isReady(name))
        .map(([name]) => name)
      for (const name of names) units.get(name)!.reload = 'underway'
      return names
    },
    reloadLater(name) {
      const unit = units.get(name)
      if (unit !== undefined) unit.reload = 'wanted'
    },
    waits(name) {
      const unit = units.get(name)
      if (unit !== undefined) unit.reload = 'no'
    },
    isAtRest(name) {
      const unit = units.get(name)
      return unit === undefined || (!unit.active && unit.reload === 'no' && unit.queue.length === 0)
    },
    loaded(name, items) {
      const unit = units.get(name)
      if (items.length === 0) {
        units.delete(name)
        return
      }
      const held = unit ?? { queue: [], active: false, troubled: true, reload: 'no' as const }
      held.troubled = true
      held.reload = 'no'
      held.queue = [...items]
      units.set(name, held)
      schedule(held)
    },
    clear() {
      ready = []
      for (const [name, unit] of units) {
        unit.queue = []
        unit.active = false
        if (!unit.troubled) units.delete(name)
      }
    },
    get hasReady() {
      return ready.length > 0
    },
    get reloadsWanted() {
      for (const unit of units.values()) if (unit.reload === 'wanted') return true
      return false
    },
    get troubledCount() {
      let count = 0
      for (const unit of units.values()) if (unit.troubled) count++
      return count
    },
  }
}
