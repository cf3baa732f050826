import type { StoredEvent } from '../../streams/event.ts'
import { typeMatcher } from '../../streams/type-filter.ts'
import type { SendResult } from '../sender.ts'
import { createAlarm, type Alarm } from './alarm.ts'
import { createChanges, type TakenChanges } from './changes.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import { createCursor, type Cursor } from './cursor.ts'
import { createDueRetries, type DueRetries } from './due-retries.ts'
import type { FlushedLane } from './flush-outcomes.ts'
import { buriedRow, rowOf, toFlush, toItem, type FlyingFlush } from './lane-flush.ts'
import type { LaneServices } from './lane-services.ts'
import { createLease, type Lease } from './lease.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import { createPacing, type Pacing } from './pacing.ts'
import { recordOutcome } from './record-outcome.ts'
import { createSignal, type Signal } from './signal.ts'
import { createUnits, unitOf, type Item, type Units } from './units.ts'
import { createWindow, type Window } from './window.ts'

/** After a failed database call a lane pauses so long. */
const errorPauseMs = 1_000

/**
 * One leased webhook being worked on: takes events from the stream, sends them in the order of its
 * units, and collects what the next flush shall write.
 */
export class Lane {
  readonly webhook: ClaimedWebhook
  readonly #token: string
  readonly #services: LaneServices
  readonly #signal: Signal
  readonly #alarm: Alarm
  readonly #window: Window
  readonly #units: Units
  readonly #pacing: Pacing
  readonly #changes = createChanges()
  readonly #matches: (type: string) => boolean
  readonly #host: string
  readonly #abort = new AbortController()
  /** What is being sent, and since when. */
  readonly #sending = new Map<Item, number>()
  #phase: 'working' | 'stopping' | 'releasing' | 'ended' = 'working'
  /** Retrying deliveries that belong to no unit. */
  #loose: number
  readonly #retries: DueRetries
  readonly #cursor: Cursor
  #loading = 0
  readonly #lease: Lease
  #stored: { offset: number; saturated: boolean }

  /** @param leasedAt local time just before the claim was sent */
  constructor(webhook: ClaimedWebhook, token: string, leasedAt: number, services: LaneServices) {
    this.webhook = webhook
    this.#token = token
    this.#lease = createLease(services.clock, services.settings.leaseMs, leasedAt)
    this.#services = services
    this.#signal = createSignal(services.clock)
    this.#alarm = createAlarm(services.clock, () => this.#signal.fire())
    this.#window = createWindow(webhook.offset)
    this.#units = createUnits(webhook.units)
    this.#cursor = createCursor(services.reader, webhook.stream)
    this.#pacing = createPacing(services.clock, webhook.rateLimit, services.settings.maxConcurrency)
    this.#matches = typeMatcher(webhook.types)
    this.#host = new URL(webhook.url).host
    this.#loose = webhook.loose
    this.#retries = createDueRetries(webhook.dueInMs === null ? null : leasedAt + webhook.dueInMs)
    this.#stored = { offset: webhook.offset, saturated: webhook.saturated }
  }

  /**
   * Works until there is nothing more to do, the lease is lost or the lane is stopped. Never rejects.
   *
   * @param dueNow its retries that are due, where they are loaded already
   */
  async run(dueNow: readonly LoadedDelivery[]): Promise<void> {
    if (dueNow.length > 0) this.#takeDue(dueNow)
    while (this.#isOpen()) {
      try {
        this.#reload()
        this.#loadDue()
        await this.#fill()
        this.#spillSlow()
        this.#dispatch()
      } catch (error) {
        this.#services.onError(error, this.webhook.id)
        this.#alarm.ring(errorPauseMs)
      }
      if (this.#isBusy()) await this.#signal.wait()
      else if (this.#isOpen() && !(await this.#lingers())) this.#phase = 'releasing'
    }
    const { lingerMs, flushMs } = this.#services.settings
    this.#services.requestFlush(lingerMs === 0 ? 0 : flushMs)
    while (this.#phase === 'releasing') await this.#signal.wait()
    this.#alarm.cancel()
  }

  /** There may be new events. */
  wake(): void {
    this.#cursor.wake()
    this.#signal.fire()
  }

  /** The webhook was changed: the next flush asks how it stands, whatever there is to write. */
  recheck(): void {
    this.#lease.age()
  }

  /** Begins nothing new, finishes what is being sent, gives the lease back. */
  stop(): void {
    if (this.#phase === 'working') this.#phase = 'stopping'
    this.#signal.fire()
  }

  /** Breaks off what is being sent: its outcome stays open, and it is sent again later. */
  abandon(): void {
    this.#abort.abort()
  }

  /** The lease is not, or may no longer be, this worker's: ends at once and writes nothing (W5). */
  lose(): void {
    this.#phase = 'ended'
    this.#abort.abort()
    this.#signal.fire()
  }

  /** By the local clock, the lease should be renewed. */
  needsRenewal(): boolean {
    return this.#lease.isAgeing()
  }

  /** By the local clock, the lease can no longer be trusted. */
  isOverdue(): boolean {
    return this.#lease.isOverdue()
  }

  /** What to write now; null when there is nothing (and no renewal is asked for). */
  takeFlush(renew: boolean): FlyingFlush | null {
    if (this.#phase === 'ended') return null
    const release = this.#phase === 'releasing'
    const now = { offset: this.#window.lowWater(), saturated: this.#isSaturated() }
    const moved = now.offset !== this.#stored.offset || now.saturated !== this.#stored.saturated
    if (!renew && !release && !moved && !this.#changes.dirty) return null
    this.#stored = now
    const taken = this.#changes.take()
    return {
      taken,
      flush: toFlush({ webhookId: this.webhook.id, token: this.#token, release, ...now }, taken),
    }
  }

  /** The flush that was sent at `sentAt` stands; the lease runs from there. */
  flushed({ flush, taken }: FlyingFlush, { state, dueInMs }: FlushedLane, sentAt: number): void {
    this.#changes.written(taken)
    this.#retries.due(dueInMs === null ? null : sentAt + dueInMs)
    this.#lease.renewedAt(sentAt)
    if (flush.release) this.#phase = 'ended'
    else if (state !== 'active' && this.#phase === 'working') this.#phase = 'stopping'
    this.#signal.fire()
  }

  /** The flush failed: what it carried goes into the next one. */
  flushFailed(taken: TakenChanges): void {
    this.#changes.giveBack(taken)
    this.#stored = { ...this.#stored, offset: -1 }
  }

  #isOpen(): boolean {
    return this.#phase === 'working' || this.#phase === 'stopping'
  }

  /** So much is in trouble that new events wait in the stream. In stream order, anything is so much. */
  #isSaturated(): boolean {
    const { troubledCount } = this.#units
    if (this.webhook.ordering === 'stream') return troubledCount > 0
    return troubledCount + this.#loose >= this.#services.settings.maxTroubledUnits
  }

  #isBusy(): boolean {
    if (this.#sending.size > 0) return this.#isOpen()
    if (this.#phase !== 'working') return false
    return (
      this.#units.hasReady ||
      this.#loading > 0 ||
      this.#units.reloadsWanted ||
      (this.#canTake() && !this.#cursor.atEnd)
    )
  }

  /** Keeps the lease a moment longer; true when there is something to do again. */
  async #lingers(): Promise<boolean> {
    const { lingerMs } = this.#services.settings
    if (lingerMs === 0 || this.#phase !== 'working') return false
    return this.#signal.wait(lingerMs)
  }

  #canTake(): boolean {
    const { maxWindow, maxWindowBytes } = this.#services.settings
    return (
      this.#phase === 'working' &&
      this.#window.size < maxWindow &&
      this.#window.bytes < maxWindowBytes &&
      // rows of blocked events leave with the next flush
      this.#changes.size < maxWindow * 4 &&
      !this.#isSaturated()
    )
  }

  /** Takes events from the stream until there are enough, or no more. */
  async #fill(): Promise<void> {
    while (this.#canTake() && !this.#cursor.atEnd) {
      const next = await this.#cursor.next(this.#window.scanned)
      if ('readTo' in next) this.#window.scannedTo(next.readTo)
      else this.#take(next)
    }
  }

  #take(event: StoredEvent): void {
    if (!this.#matches(event.type)) return this.#window.scannedTo(event.offset)
    const entry = this.#window.add(event.offset, event.dataText.length)
    const item: Item = { event, unit: unitOf(this.webhook.ordering, event), attempts: 0, entry, hasRow: false }
    if (this.#units.place(item) === 'blocked') this.#block(item)
  }

  #block(item: Item): void {
    this.#changes.put(rowOf(item, { state: 'blocked' }))
    if (item.entry !== null) this.#window.settle(item.entry)
    this.#services.requestFlush(this.#services.settings.flushMs)
  }

  #dispatch(): void {
    while (
      this.#phase === 'working' &&
      this.#units.hasReady &&
      this.#sending.size < this.#pacing.concurrency()
    ) {
      const waitMs = this.#pacing.waitMs()
      if (waitMs > 0) return this.#alarm.ring(waitMs)
      if (this.isOverdue()) return this.lose()
      if (!this.#services.limiter.tryEnter(this.#host))
        return this.#services.limiter.onFree(this.#signal.fire)
      const item = this.#units.next()
      if (item !== undefined) void this.#send(item)
    }
  }

  async #send(item: Item): Promise<void> {
    const { clock, limiter, deliver } = this.#services
    this.#pacing.sent()
    this.#sending.set(item, clock.now())
    const result = await deliver(this.webhook, item.event, this.#abort.signal)
    this.#sending.delete(item)
    this.#retries.gaveUp(item.event.offset)
    limiter.leave(this.#host)
    if (this.#phase !== 'ended') this.#settle(item, result)
    this.#signal.fire()
  }

  #settle(item: Item, result: SendResult): void {
    const attempt = item.attempts + 1
    const outcome = this.#services.judge(this.webhook, item.event, attempt, result)
    if (outcome.kind === 'abandoned') return
    recordOutcome(this.#changes, item, attempt, outcome, result)
    this.#pacing.outcome(outcome.kind === 'delivered')
    if (outcome.kind === 'delivered' || outcome.kind === 'dead') this.#pass(item)
    else this.#hold(item)
    if (item.entry !== null) this.#window.settle(item.entry)
    if (outcome.kind === 'disable') this.#phase = 'stopping'
    this.#services.requestFlush(this.#services.settings.flushMs)
  }

  /** The item is through, delivered or dead: what comes behind it may go. */
  #pass(item: Item): void {
    if (item.hasRow && item.unit === null) this.#loose--
    if (item.hasRow && item.unit !== null) this.#changes.promote(item.unit)
    this.#units.left(item)
  }

  /** The item is in trouble: what comes behind it in its unit has to wait, recorded like itself. */
  #hold(item: Item): void {
    if (item.unit === null && !item.hasRow) this.#loose++
    if (item.unit !== null) this.#changes.keepHead(item.unit)
    item.hasRow = true
    const behind = this.#units.troubled(item)
    for (const waiting of behind) this.#retries.gaveUp(waiting.event.offset)
    if (this.webhook.ordering === 'stream') return this.#rewindBehind(item)
    for (const waiting of behind) if (!waiting.hasRow) this.#block(waiting)
  }

  /** In stream order nothing later was sent: it is simply read again once this one is through. */
  #rewindBehind(item: Item): void {
    if (item.entry === null) return
    this.#units.clear()
    this.#window.settle(item.entry)
    this.#window.rewind(item.event.offset)
    this.#cursor.rewind()
  }

  /** A slow send at the head of a full window holds all others back: record it, and let them pass (W4). */
  #spillSlow(): void {
    const { maxWindow, spillAfterMs, leaseMs } = this.#services.settings
    if (this.#window.size < maxWindow || this.webhook.ordering === 'stream') return
    const now = this.#services.clock.now()
    for (const [item, since] of this.#sending) {
      if (item.hasRow || item.entry === null || now - since < spillAfterMs) continue
      // should this worker die, the delivery falls due after the send could have ended
      const delayMs = this.webhook.timeoutMs + leaseMs
      this.#changes.put(rowOf(item, { state: 'retrying', attempts: item.attempts, delayMs }))
      this.#hold(item)
      this.#window.settle(item.entry)
    }
    if (this.#window.size >= maxWindow) this.#alarm.ring(spillAfterMs)
  }

  /** Loads the rest of the units whose head is gone, once everything of them is written. */
  #reload(): void {
    if (this.#phase !== 'working' || !this.#units.reloadsWanted) return
    const isWritten = (unit: string): boolean =>
      !this.#changes.hasRowsOf(unit) && !this.#changes.promotes(unit)
    for (const unit of this.#units.takeReloads(isWritten)) void this.#load(unit)
    if (this.#units.reloadsWanted) this.#services.requestFlush(0)
  }

  async #load(unit: string): Promise<void> {
    const done = await this.#fetch(async () =>
      this.#accept(unit, await this.#services.loadUnit(this.webhook.id, unit)),
    )
    if (!done) this.#units.reloadLater(unit)
  }

  /** Something from the database, beside the main loop; false when it failed, after a pause. */
  async #fetch(work: () => Promise<void>): Promise<boolean> {
    this.#loading++
    try {
      await work()
      return true
    } catch (error) {
      this.#services.onError(error, this.webhook.id)
      this.#retries.due(this.#services.clock.now() + errorPauseMs)
      this.#alarm.ring(errorPauseMs)
      return false
    } finally {
      this.#loading--
      this.#signal.fire()
    }
  }

  #accept(unit: string, found: readonly LoadedDelivery[]): void {
    if (found.length === 0 && this.#changes.hasRowsOf(unit)) return this.#units.reloadLater(unit)
    const usable = found.filter((delivery) => this.#keepOrBury(delivery))
    if (found.length > 0 && usable.length === 0) return this.#units.reloadLater(unit)
    // a head that waits for a later time: nothing of the unit may be sent before
    if ((usable[0]?.dueInMs ?? 0) > 0) return this.#units.waits(unit)
    this.#units.loaded(
      unit,
      usable.map((delivery) => this.#inHandItem(delivery)),
    )
  }

  #keepOrBury(delivery: LoadedDelivery): boolean {
    if (delivery.event !== null) return true
    this.#changes.put(buriedRow(delivery))
    if (delivery.unit !== null) this.#changes.promote(delivery.unit)
    this.#services.requestFlush(0)
    return false
  }

  /** Loads the retries that have fallen due, also while others are still in hand (W4). */
  #loadDue(): void {
    if (this.#phase !== 'working') return
    const now = this.#services.clock.now()
    const waitMs = this.#retries.loadInMs(now)
    if (waitMs > 0) return waitMs < Infinity ? this.#alarm.ring(waitMs) : undefined
    this.#retries.beginLoad(now)
    void this.#fetch(async () => this.#takeDue(await this.#services.loadDue([this.webhook.id]))).then(() =>
      this.#retries.endLoad(),
    )
  }

  #isFresh({ offset, unit }: LoadedDelivery): boolean {
    if (!this.#retries.isFresh(offset) || this.#changes.has(offset)) return false
    return unit === null || this.#units.isAtRest(unit)
  }

  #takeDue(due: readonly LoadedDelivery[]): void {
    this.#retries.due(null)
    for (const delivery of due.filter((each) => this.#isFresh(each))) {
      const keep = this.#keepOrBury(delivery)
      if (!keep && delivery.unit === null) this.#loose--
      else if (!keep && delivery.unit !== null) this.#units.reloadLater(delivery.unit)
      else if (delivery.unit === null) this.#units.place(this.#inHandItem(delivery))
      else this.#units.loaded(delivery.unit, [this.#inHandItem(delivery)])
    }
  }

  #inHandItem(delivery: LoadedDelivery): Item {
    this.#retries.took(delivery.offset)
    return toItem(delivery)
  }
}
