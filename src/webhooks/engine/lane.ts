import type { StoredEvent } from '../../streams/event.ts'
import type { SendResult } from '../sender.ts'
import { createCancel } from '../cancel.ts'
import { brokenAttempt } from '../send-error.ts'
import { createAlarm, type Alarm } from './alarm.ts'
import { createChanges, type TakenChanges } from './changes.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import { createCursor, type Cursor } from './cursor.ts'
import type { FlushedLane } from './flush-outcomes.ts'
import { createLaneFlushing, rowOf, type FlyingFlush, type LaneFlushing } from './lane-flush.ts'
import type { LaneServices } from './lane-services.ts'
import { createLease, type Lease } from './lease.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import { queueUpFor, type Host, type Place } from './limiter.ts'
import { matcherOf } from './matcher.ts'
import { createPacing, type Pacing } from './pacing.ts'
import { recordOutcome } from './record-outcome.ts'
import { createRecorded, type Recorded } from './recorded.ts'
import { createSending, type SendingLink } from './sending.ts'
import { createSignal, type Signal } from './signal.ts'
import { createUnits, itemOf, type Item, type Units } from './units.ts'
import { createValidity, type Validity } from './validity.ts'
import { createWindow, isWorthStoring, type Window } from './window.ts'

/**
 * One leased webhook being worked on: takes events from the stream, sends them in the order of its
 * units, and collects what the next flush shall write.
 */
export class Lane {
  readonly webhook: ClaimedWebhook
  readonly lease: Lease
  readonly #services: LaneServices
  readonly #signal: Signal
  readonly #alarm: Alarm
  readonly #window: Window
  readonly #units: Units
  readonly #pacing: Pacing
  readonly #changes = createChanges()
  readonly #matches: (event: StoredEvent) => boolean
  readonly #host: Host
  readonly #sending = createSending()
  /** Breaks off what is being sent. */
  readonly #cancel = createCancel()
  #phase: 'working' | 'stopping' | 'releasing' | 'ended' = 'working'
  readonly #recorded: Recorded
  readonly #cursor: Cursor
  /** It has sent something. */
  #sent = false
  /** Whoever wakes `run` has done what there was to do. */
  #stepped = false
  /** It was told to stop: the lease goes back at once. */
  #stopped = false
  /** While it stops, what lies below is still sent: above it something was, which would be sent again. */
  #finishBelow = 0
  readonly #queueUp: () => void
  readonly #validity: Validity
  readonly #flushing: LaneFlushing

  /** @param leasedAt local time just before the claim was sent */
  constructor(webhook: ClaimedWebhook, token: string, leasedAt: number, services: LaneServices) {
    this.webhook = webhook
    this.lease = createLease(services.clock, services.settings.leaseMs, leasedAt)
    this.#validity = createValidity(services.clock, webhook, leasedAt, services.settings.spillAfterMs)
    this.#services = services
    this.#signal = createSignal(services.clock)
    const look = (): void => this.look()
    this.#alarm = createAlarm(services.clock, look)
    this.#window = createWindow(webhook.offset)
    this.#units = createUnits(webhook.units)
    this.#cursor = createCursor(services.reader, webhook.stream, look)
    this.#pacing = createPacing(services.clock, webhook.rateLimit, services.settings.maxConcurrency)
    this.#matches = matcherOf(webhook)
    this.#host = services.limiter.hold(new URL(webhook.url).host)
    this.#queueUp = queueUpFor(services.limiter, this.#host, () => this.#placeFree())
    this.#recorded = createRecorded({
      webhook,
      leasedAt,
      services,
      changes: this.#changes,
      units: this.#units,
      alarm: this.#alarm,
      onLoaded: look,
    })
    this.#flushing = createLaneFlushing({
      webhook,
      token,
      changes: this.#changes,
      window: this.#window,
      isSaturated: () => this.#isSaturated(),
    })
  }

  /**
   * Works until there is nothing more to do, the lease is lost or the lane is stopped. Never rejects.
   *
   * @param dueNow its retries that are due, where they are loaded already
   */
  async run(dueNow: readonly LoadedDelivery[]): Promise<void> {
    if (dueNow.length > 0) this.#recorded.begin(dueNow)
    while (this.#isOpen()) {
      if (!this.#stepped) this.#step()
      this.#stepped = false
      if (this.#isBusy()) await this.#signal.wait()
      else if (this.#isOpen() && !(await this.#lingers()) && this.#isOpen() && !this.#isBusy())
        this.#phase = 'releasing'
    }
    this.#services.requestRelease(this.#stopped)
    while (this.#phase === 'releasing') await this.#signal.wait()
    this.#alarm.cancel()
    this.#services.limiter.release(this.#host)
  }

  /** Does what can be done now. */
  #step(): void {
    this.#heedChange()
    if (this.#phase === 'working') this.#recorded.load()
    try {
      this.#fill()
    } catch (error) {
      this.#alarm.ring(this.#services.onError(error, this.webhook.id))
    }
    this.#spillSlow()
    this.#dispatch()
  }

  /** Once the claim is out of date, what comes next is for the next one; what is being sent has a moment to end. */
  #heedChange(): void {
    const leftMs = this.#validity.leftMs()
    if (leftMs > 0) return leftMs < Infinity ? this.#alarm.ring(leftMs) : undefined
    this.#phase = 'stopping'
    this.#finishBelow = 0
    if (this.#validity.graceMs() > 0) this.#alarm.ring(this.#validity.graceMs())
    else this.abandon()
  }

  /**
   * There may be new events.
   *
   * @returns after which offset, where it has nothing to do but to wait for their page: once that is read, `look`
   */
  wake(): number | null {
    const waits = this.#cursor.atEnd
    this.#cursor.wake()
    if (waits && this.#wantsMore() && this.#hasRoom()) return this.#window.scanned
    this.look()
    return null
  }

  look(): void {
    this.#signal.fire()
  }

  /**
   * Takes nothing new, finishes what is being sent and what lies before that in the stream, so that
   * nothing will be sent twice, and gives the lease back.
   */
  stop(): void {
    this.#stopped = true
    if (this.#phase === 'working') {
      this.#phase = 'stopping'
      this.#finishBelow = Math.max(this.#window.settledTo(), this.#sending.furthest())
    }
    this.#signal.fire()
  }

  /** Breaks off what is being sent: its outcome stays open, and it is sent again later. */
  abandon(): void {
    this.#finishBelow = 0
    this.#cancel.cancel()
  }

  /** The lease is not, or may no longer be, this worker's: ends at once and writes nothing (W5). */
  lose(): void {
    this.#phase = 'ended'
    this.abandon()
    this.#signal.fire()
  }

  /** It has sent something, got on in the stream, or was changed; false: what there is lies above the horizon. */
  get progressed(): boolean {
    return this.#sent || this.#validity.leftMs() === 0 || this.#window.lowWater() > this.webhook.offset
  }

  /** Nothing is left to do but to give the lease back. */
  isDone(): boolean {
    return !this.#isOpen()
  }

  /** What to write now; null when there is nothing (and no renewal is asked for). */
  takeFlush(renew: boolean): FlyingFlush | null {
    if (this.#phase === 'ended') return null
    return this.#flushing.take({ renew, release: this.#phase === 'releasing' })
  }

  /** The flush that was sent at `sentAt` stands. */
  flushed({ flush }: FlyingFlush, { state, dueInMs, fence }: FlushedLane, sentAt: number): void {
    this.#changes.written()
    this.#window.stored(flush.offset)
    this.#units.flushed()
    this.#recorded.dueIn(dueInMs)
    if (flush.renew) this.lease.renewedAt(sentAt)
    this.#validity.lastChange(fence)
    if (flush.release) this.#phase = 'ended'
    else if (state !== 'active' && this.#phase === 'working') this.#phase = 'stopping'
    // a thousand lanes that only linger need not look each time
    const nothingNew = this.#phase === 'working' && dueInMs === null && this.#validity.leftMs() === Infinity
    if (!nothingNew || this.#isBusy()) this.#signal.fire()
  }

  /** The flush failed: what it carried goes into the next one. */
  flushFailed(taken: TakenChanges): void {
    this.#flushing.failed(taken)
  }

  #isOpen(): boolean {
    return this.#phase === 'working' || this.#phase === 'stopping'
  }

  /** So much is in trouble that new events wait in the stream. In stream order, anything is so much. */
  #isSaturated(): boolean {
    const { troubledCount } = this.#units
    if (this.webhook.ordering === 'stream') return troubledCount > 0
    return troubledCount + this.#recorded.loose >= this.#services.settings.maxTroubledUnits
  }

  #isBusy(): boolean {
    if (this.#sending.size > 0) return this.#isOpen()
    if (this.#phase === 'stopping') return this.#hasReady()
    if (this.#phase !== 'working') return false
    return this.#hasReady() || this.#recorded.isLoading || this.#units.reloadsWanted || this.#wantsMore()
  }

  #hasReady(): boolean {
    return this.#phase === 'stopping' ? this.#units.hasReadyBelow(this.#finishBelow) : this.#units.hasReady
  }

  /** Keeps the lease a moment longer; true when there is something to do again. */
  async #lingers(): Promise<boolean> {
    const lingerMs = this.#services.lingerMs()
    if (lingerMs === 0 || this.#phase !== 'working') return false
    return this.#signal.wait(lingerMs)
  }

  #wantsMore(): boolean {
    return this.#phase === 'working' && !this.#cursor.atEnd && !this.#isSaturated()
  }

  #hasRoom(): boolean {
    const { maxWindow, maxWindowBytes } = this.#services.settings
    return (
      this.#window.size < maxWindow &&
      this.#window.bytes < maxWindowBytes &&
      // rows of blocked events leave with the next flush
      this.#changes.size < maxWindow * 4
    )
  }

  /** Takes events from the stream until there are enough, or no more, or a page is on its way. */
  #fill(): void {
    while (this.#wantsMore() && this.#hasRoom()) {
      const next = this.#cursor.next(this.#window.scanned)
      if (next === null) break
      if ('readTo' in next) this.#window.scannedTo(next.readTo)
      else this.#take(next)
    }
    if (this.#wantsMore() && !this.#hasRoom()) this.#makeRoom()
  }

  /** Room is made by storing how far it has come. */
  #makeRoom(): void {
    const { maxWindow } = this.#services.settings
    const enough = isWorthStoring(this.#window, maxWindow, this.#hasReady())
    if ((enough || this.#changes.size >= maxWindow) && !this.#changes.flying) this.#services.requestFlush(0)
  }

  #take(event: StoredEvent): void {
    if (!this.#matches(event)) return this.#window.scannedTo(event.offset)
    const entry = this.#window.add(event.offset, event.dataText.length)
    const item = itemOf(event, this.webhook.ordering, entry)
    if (this.#units.place(item) === 'blocked') this.#block(item)
  }

  #block(item: Item): void {
    this.#changes.put(rowOf(item, { state: 'blocked' }))
    if (item.unit !== null && this.#units.isHeadless(item.unit)) this.#changes.promote(item.unit)
    if (item.entry !== null) this.#window.settle(item.entry)
    this.#services.requestFlush(this.#services.settings.flushMs)
  }

  #dispatch(): void {
    while (this.#isOpen() && this.#hasReady() && this.#sending.size < this.#pacing.concurrency()) {
      const waitMs = this.#pacing.waitMs()
      if (waitMs > 0) return this.#alarm.ring(waitMs)
      if (this.lease.isOverdue()) return this.lose()
      const place = this.#services.limiter.tryEnter(this.#host)
      if (place === null) return this.#awaitPlace()
      const item = this.#phase === 'stopping' ? this.#units.nextBelow(this.#finishBelow) : this.#units.next()
      if (item === undefined) return this.#services.limiter.leave(place)
      this.#send(item, place)
    }
  }

  #awaitPlace(): void {
    if (this.#phase === 'stopping' && this.#services.limiter.spent) this.#finishBelow = 0
    else this.#queueUp()
  }

  #placeFree(): void {
    if (this.#isOpen()) this.#heedChange()
    this.#dispatch()
    if (!this.#isBusy()) this.#signal.fire()
  }

  #send(item: Item, place: Place): void {
    this.#pacing.sent()
    this.#sent = true
    const link = this.#sending.add(item, place.since)
    const end = (result: SendResult): void => this.#sentTo(item, place, link, result)
    // what breaks must not end the process, nor stay open for ever
    this.#services
      .deliver(this.webhook, item.event, this.#cancel)
      .then(end, (error) => end(brokenAttempt(error)))
  }

  #sentTo(item: Item, place: Place, link: SendingLink, result: SendResult): void {
    this.#sending.remove(link)
    this.#recorded.gaveUp(item)
    this.#services.limiter.leave(place)
    if (this.#phase !== 'ended') this.#settle(item, result)
    this.#goOn()
  }

  /** Here and now, since waking `run` for each delivery is felt. */
  #goOn(): void {
    if (this.#isOpen()) this.#step()
    if (this.#isBusy()) return
    this.#stepped = true
    this.#signal.fire()
  }

  #settle(item: Item, result: SendResult): void {
    const attempt = item.attempts + 1
    const outcome = this.#services.judge(this.webhook, item.event, attempt, result)
    if (outcome.kind === 'abandoned') return this.#unspill(item)
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
    if (item.hasRow) this.#recorded.leave(item)
    this.#units.left(item)
  }

  /** The item is in trouble: what comes behind it in its unit has to wait, recorded like itself. */
  #hold(item: Item): void {
    this.#recorded.enter(item)
    const behind = this.#units.troubled(item)
    for (const waiting of behind) this.#recorded.gaveUp(waiting)
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
    const { spillAfterMs, leaseMs } = this.#services.settings
    if (this.#hasRoom() || this.webhook.ordering === 'stream') return
    for (const item of this.#sending.begunBy(this.#services.clock.now() - spillAfterMs)) {
      if (item.hasRow || item.entry === null) continue
      // should this worker die, the delivery falls due after the send could have ended
      const delayMs = this.webhook.timeoutMs + leaseMs
      this.#changes.put(rowOf(item, { state: 'retrying', attempts: item.attempts, delayMs }))
      this.#hold(item)
      this.#recorded.took(item)
      this.#window.settle(item.entry)
      this.#services.requestFlush(0)
    }
    if (!this.#hasRoom()) this.#alarm.ring(spillAfterMs)
  }

  /** A recorded send that was broken off did not end: it is due at once. */
  #unspill(item: Item): void {
    if (item.entry === null || !item.hasRow) return
    this.#changes.put(rowOf(item, { state: 'retrying', attempts: item.attempts }))
  }
}
