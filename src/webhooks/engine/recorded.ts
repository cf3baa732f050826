import type { Alarm } from './alarm.ts'
import type { Changes } from './changes.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import { createDueRetries, type DueRetries } from './due-retries.ts'
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
  /** The database has just said in how many milliseconds the earliest retry falls due; null: there is none. */
  dueIn(ms: number | null): void
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

/** A load that is early finds nothing, and a timer may ring a moment early. */
const lateMs = 2

/** With up to 64 events each, that is as much as one answer should hold. */
const maxUnitsPerLoad = 32

export function createRecorded(options: RecordedOptions): Recorded {
  return new RecordedDeliveries(options)
}

class RecordedDeliveries implements Recorded {
  loose: number
  readonly #options: RecordedOptions
  readonly #retries: DueRetries
  #loading = 0
  #pausedUntil = 0

  constructor(options: RecordedOptions) {
    const { webhook } = options
    this.#options = options
    this.loose = webhook.loose
    this.#retries = createDueRetries()
    this.dueIn(webhook.dueInMs)
  }

  begin(dueNow: readonly LoadedDelivery[]): void {
    this.#retries.beginLoad(this.#options.leasedAt)
    this.#takeDue(dueNow)
    this.#retries.endLoad()
  }

  load(): void {
    const { services, units, alarm } = this.#options
    // nearly every event asks, and nearly none is in trouble
    if (this.#retries.idle && !units.reloadsWanted) return
    const now = services.clock.now()
    if (now < this.#pausedUntil) return alarm.ring(this.#pausedUntil - now)
    this.#reloadUnits()
    this.#loadDue(now)
  }

  dueIn(ms: number | null): void {
    this.#retries.due(ms === null ? null : this.#options.services.clock.now() + ms + lateMs)
  }

  enter(item: Item): void {
    if (item.unit === null && !item.hasRow) this.loose++
    if (item.unit !== null) this.#options.changes.keepHead(item.unit)
    item.hasRow = true
  }

  leave(item: Item): void {
    if (item.unit === null) this.loose--
    else this.#options.changes.promote(item.unit)
  }

  took(item: Item): void {
    this.#retries.took(item.event.offset)
  }

  gaveUp(item: Item): void {
    this.#retries.gaveUp(item.event.offset)
  }

  get isLoading(): boolean {
    return this.#loading > 0
  }

  /** False when it failed: nothing is loaded for a moment then. */
  async #fetch(work: () => Promise<void>): Promise<boolean> {
    const { services, webhook, onLoaded } = this.#options
    this.#loading++
    try {
      await work()
      return true
    } catch (error) {
      this.#pausedUntil = services.clock.now() + services.onError(error, webhook.id)
      return false
    } finally {
      this.#loading--
      onLoaded()
    }
  }

  #inHand(delivery: LoadedDelivery): Item {
    this.#retries.took(delivery.offset)
    return toItem(delivery)
  }

  #keepOrBury(delivery: LoadedDelivery): boolean {
    if (delivery.event !== null) return true
    const { changes, services } = this.#options
    changes.put(buriedRow(delivery))
    if (delivery.unit !== null) changes.promote(delivery.unit)
    services.requestFlush(0)
    return false
  }

  #acceptUnit(unit: string, found: readonly LoadedDelivery[]): void {
    const { changes, services, units } = this.#options
    const usable = found.filter((delivery) => this.#keepOrBury(delivery))
    if (usable.length === 0 && changes.hasRowsOf(unit)) {
      services.requestFlush(0)
      return units.reloadAfterFlush(unit)
    }
    // a head that waits for a later time: nothing of the unit may be sent before
    if ((usable[0]?.dueInMs ?? 0) > 0) return units.waits(unit)
    units.loaded(
      unit,
      usable.map((delivery) => this.#inHand(delivery)),
    )
  }

  async #loadUnits(names: readonly string[]): Promise<void> {
    const { services, webhook, units } = this.#options
    const done = await this.#fetch(async () => {
      const found = await services.loadUnits(webhook.id, names)
      for (const name of names)
        this.#acceptUnit(
          name,
          found.filter(({ unit }) => unit === name),
        )
    })
    if (!done) for (const name of names) units.reloadSoon(name)
  }

  #isFresh({ offset, unit }: LoadedDelivery): boolean {
    const { changes, units } = this.#options
    if (!this.#retries.isFresh(offset) || changes.has(offset)) return false
    return unit === null || units.isAtRest(unit)
  }

  #takeDue(due: readonly LoadedDelivery[]): void {
    const { units } = this.#options
    for (const delivery of due.filter((one) => this.#isFresh(one))) {
      const keep = this.#keepOrBury(delivery)
      if (delivery.unit === null) {
        if (keep) units.place(this.#inHand(delivery))
        else this.loose--
      } else if (keep) units.loaded(delivery.unit, [this.#inHand(delivery)])
      else units.reloadSoon(delivery.unit)
    }
  }

  async #fetchDue(now: number): Promise<void> {
    const { services, webhook } = this.#options
    try {
      this.#takeDue(await services.loadDue([webhook.id]))
    } catch (error) {
      this.#retries.due(now + errorPauseMs)
      throw error
    } finally {
      this.#retries.endLoad()
    }
  }

  #loadDue(now: number): void {
    const waitMs = this.#retries.loadInMs(now)
    if (waitMs > 0) return waitMs < Infinity ? this.#options.alarm.ring(waitMs) : undefined
    this.#retries.beginLoad(now)
    void this.#fetch(() => this.#fetchDue(now))
  }

  /** Once the outcome that took a unit's head away is written: before, the head would be loaded again. */
  #reloadUnits(): void {
    const { units, changes, services } = this.#options
    if (!units.reloadsWanted) return
    const names = units.takeReloads((name) => !changes.hasOutcomesOf(name), maxUnitsPerLoad)
    if (names.length > 0) void this.#loadUnits(names)
    if (units.reloadsWanted) services.requestFlush(0)
  }
}
