import type { Alarm } from './alarm.ts'
import type { Changes } from './changes.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import { createDueRetries } from './due-retries.ts'
import { buriedRow, toItem } from './lane-flush.ts'
import { errorPauseMs, type LaneServices } from './lane-services.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import type { Item, Units } from './units.ts'

/** The deliveries of a webhook that have rows in `deliveries`: loads what of them may be sent. */
export interface Recorded {
  /** Takes the retries that were due at the claim, loaded for all webhooks at once. */
  begin(dueNow: readonly LoadedDelivery[]): void
  /** Loads, beside the main loop, the retries that have fallen due and the units whose head is gone. */
  load(): void
  /** The database says when the earliest retry falls due; null: there is none. */
  due(at: number | null): void
  /** The item gets a row, or another attempt of it failed. */
  enter(item: Item): void
  /** The item is in hand, though it was not loaded: should someone make it due meanwhile, it is not sent beside itself. */
  took(item: Item): void
  /** The item's row is done with. */
  leave(item: Item): void
  /** The item is no longer in hand. */
  gaveUp(item: Item): void
  readonly isLoading: boolean
  /** Retrying deliveries that belong to no unit. */
  readonly loose: number
}

/** What {@link createRecorded} takes. */
export interface RecordedOptions {
  webhook: ClaimedWebhook
  /** Local time just before the claim was sent. */
  leasedAt: number
  services: Pick<LaneServices, 'clock' | 'loadDue' | 'loadUnits' | 'requestFlush' | 'onError'>
  changes: Changes
  units: Units
  alarm: Pick<Alarm, 'ring'>
  /** Something was loaded, or could not be. */
  onLoaded: () => void
}

/** With up to 64 events each, that is as much as one answer should hold. */
const maxUnitsPerLoad = 32

export function createRecorded(options: RecordedOptions): Recorded {
  const { webhook, leasedAt, services, changes, units, alarm } = options
  const retries = createDueRetries(webhook.dueInMs === null ? null : leasedAt + webhook.dueInMs)
  let { loose } = webhook
  let loading = 0
  let pausedUntil = 0

  /** False when it failed: nothing is loaded for a moment then. */
  async function fetch(work: () => Promise<void>): Promise<boolean> {
    loading++
    try {
      await work()
      return true
    } catch (error) {
      pausedUntil = services.clock.now() + services.onError(error, webhook.id)
      return false
    } finally {
      loading--
      options.onLoaded()
    }
  }

  function inHand(delivery: LoadedDelivery): Item {
    retries.took(delivery.offset)
    return toItem(delivery)
  }

  function keepOrBury(delivery: LoadedDelivery): boolean {
    if (delivery.event !== null) return true
    changes.put(buriedRow(delivery))
    if (delivery.unit !== null) changes.promote(delivery.unit)
    services.requestFlush(0)
    return false
  }

  function acceptUnit(unit: string, found: readonly LoadedDelivery[]): void {
    const usable = found.filter(keepOrBury)
    if (usable.length === 0 && changes.hasRowsOf(unit)) {
      services.requestFlush(0)
      return units.reloadAfterFlush(unit)
    }
    // a head that waits for a later time: nothing of the unit may be sent before
    if ((usable[0]?.dueInMs ?? 0) > 0) return units.waits(unit)
    units.loaded(unit, usable.map(inHand))
  }

  async function loadUnits(names: readonly string[]): Promise<void> {
    const done = await fetch(async () => {
      const found = await services.loadUnits(webhook.id, names)
      for (const name of names)
        acceptUnit(
          name,
          found.filter(({ unit }) => unit === name),
        )
    })
    if (!done) for (const name of names) units.reloadSoon(name)
  }

  function isFresh({ offset, unit }: LoadedDelivery): boolean {
    if (!retries.isFresh(offset) || changes.has(offset)) return false
    return unit === null || units.isAtRest(unit)
  }

  function takeDue(due: readonly LoadedDelivery[]): void {
    for (const delivery of due.filter(isFresh)) {
      const keep = keepOrBury(delivery)
      if (delivery.unit === null) {
        if (keep) units.place(inHand(delivery))
        else loose--
      } else if (keep) units.loaded(delivery.unit, [inHand(delivery)])
      else units.reloadSoon(delivery.unit)
    }
  }

  async function fetchDue(now: number): Promise<void> {
    try {
      takeDue(await services.loadDue([webhook.id]))
    } catch (error) {
      retries.due(now + errorPauseMs)
      throw error
    } finally {
      retries.endLoad()
    }
  }

  function loadDue(now: number): void {
    const waitMs = retries.loadInMs(now)
    if (waitMs > 0) return waitMs < Infinity ? alarm.ring(waitMs) : undefined
    retries.beginLoad(now)
    void fetch(() => fetchDue(now))
  }

  /** Once the outcome that took a unit's head away is written: before, the head would be loaded again. */
  function reloadUnits(): void {
    if (!units.reloadsWanted) return
    const names = units.takeReloads((name) => !changes.hasOutcomesOf(name), maxUnitsPerLoad)
    if (names.length > 0) void loadUnits(names)
    if (units.reloadsWanted) services.requestFlush(0)
  }

  return {
    begin(dueNow) {
      retries.beginLoad(leasedAt)
      takeDue(dueNow)
      retries.endLoad()
    },
    load() {
      // nearly every event asks, and nearly none is in trouble
      if (retries.idle && !units.reloadsWanted) return
      const now = services.clock.now()
      if (now < pausedUntil) return alarm.ring(pausedUntil - now)
      reloadUnits()
      loadDue(now)
    },
    due: (at) => retries.due(at),
    enter(item) {
      if (item.unit === null && !item.hasRow) loose++
      if (item.unit !== null) changes.keepHead(item.unit)
      item.hasRow = true
    },
    leave(item) {
      if (item.unit === null) loose--
      else changes.promote(item.unit)
    },
    took: (item) => retries.took(item.event.offset),
    gaveUp: (item) => retries.gaveUp(item.event.offset),
    get isLoading() {
      return loading > 0
    },
    get loose() {
      return loose
    },
  }
}
