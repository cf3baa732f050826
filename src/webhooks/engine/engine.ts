import type { Db } from '../../db/port.ts'
import type { Ports } from '../../ports.ts'
import type { StoredEvent } from '../../streams/event.ts'
import { maxPageEvents, readEvents } from '../../streams/read-events.ts'
import type { Outcome } from '../outcome.ts'
import type { SendResult } from '../sender.ts'
import { claimWebhooks, type Claim, type ClaimedWebhook, type ClaimScope } from './claim-webhooks.ts'
import type { EngineSettings } from './engine-settings.ts'
import { createFlusher, type Flusher } from './flusher.ts'
import { flushOutcomes } from './flush-outcomes.ts'
import type { LaneServices } from './lane-services.ts'
import { Lane } from './lane.ts'
import { createLimiter } from './limiter.ts'
import { loadDueDeliveries, loadUnit } from './load-deliveries.ts'
import { createPageReader, type PageReader } from './page-reader.ts'

/** Makes attempts and judges them; see attempt.ts for the real one. */
export interface Delivery {
  /** Makes one attempt to deliver an event to a webhook. Never rejects. */
  attempt(webhook: ClaimedWebhook, event: StoredEvent, signal: AbortSignal): Promise<SendResult>
  /** @param attempt which attempt it was, from 1 */
  judge(webhook: ClaimedWebhook, event: StoredEvent, attempt: number, result: SendResult): Outcome
}

/** What {@link Engine} is made of. */
export interface EngineOptions {
  db: Db
  ports: Ports
  /** Told the installation's id with every claim, since `webhook-id`s are made of it. */
  delivery: (installationId: string) => Delivery
  settings: EngineSettings
  /** The environment this process was started for (W7); null: none. */
  environment: string | null
}

/** What a claim brought. */
export interface ClaimReport {
  /** Webhooks that are being worked on now because of it. */
  started: number
  /** It took as many as were free to take: there may be more. */
  full: boolean
  /** Milliseconds until there may be something to claim again, as far as the database knows now. */
  nextDueInMs: number | null
  /** The environment the database belongs to, when it is not this process's; nothing is claimed then. */
  foreignEnvironment: { environment: string | null } | null
}

/**
 * The delivery engine of a process: claims webhooks, works on each in a lane of its own, and flushes
 * what became of it. Who drives it decides when to claim: see drain.ts for one bounded run, and
 * serve.ts for a loop that is woken.
 */
export class Engine {
  readonly #options: EngineOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #running = new Set<Promise<void>>()
  readonly #reader: PageReader
  readonly #flusher: Flusher
  readonly #limiter
  readonly #streams = new Map<number, string>()
  #laneEnded: (streamId: number) => void = () => {}
  #stopping = false

  constructor(options: EngineOptions) {
    this.#options = options
    const { db, ports, settings } = options
    this.#reader = createPageReader((stream, after) =>
      readEvents(db, stream, { after, limit: maxPageEvents }),
    )
    this.#limiter = createLimiter({ total: settings.maxSends, perHost: settings.maxSendsPerHost })
    this.#flusher = createFlusher({
      clock: ports.clock,
      lanes: () => this.#lanes.values(),
      flush: (lanes) => flushOutcomes(db, lanes, settings.leaseMs),
      onError: (error) =>
        ports.log.warn({ err: error }, 'delivery outcomes could not be written, trying again'),
      leaseMs: settings.leaseMs,
    })
  }

  /** Webhooks being worked on. */
  get active(): number {
    return this.#lanes.size
  }

  /**
   * Called whenever a webhook is done with for now. What was published while its lease was being given
   * back may have been claimed by nobody, so who drives the engine claims the stream once more.
   */
  onLaneEnd(callback: (streamId: number) => void): void {
    this.#laneEnded = callback
  }

  /** A stream may have new events: the webhooks that are being worked on look again. */
  wake(streamId: number): void {
    const stream = this.#streams.get(streamId)
    if (stream === undefined) return
    this.#reader.wake(stream)
    for (const lane of this.#lanes.values()) if (lane.webhook.streamId === streamId) lane.wake()
  }

  /** As {@link wake}, for every stream: after a lost connection anything may have happened. */
  wakeAll(): void {
    for (const streamId of this.#streams.keys()) this.wake(streamId)
  }

  /** A webhook was changed: its lane asks the database how it stands. */
  recheck(webhookId: string): void {
    this.#lanes.get(webhookId)?.recheck()
    this.#flusher.request(0)
  }

  /** Claims what the scope holds and room allows, and begins to work on it. One statement, and one more with due retries. */
  async claim(scope: ClaimScope): Promise<ClaimReport> {
    const { db, ports, settings, environment } = this.#options
    const limit = settings.maxLanes - this.#lanes.size
    if (limit <= 0 || this.#stopping)
      return { started: 0, full: true, nextDueInMs: null, foreignEnvironment: null }
    const token = crypto.randomUUID()
    const leasedAt = ports.clock.now()
    const claim = await claimWebhooks(db, { scope, token, leaseMs: settings.leaseMs, limit, environment })
    await this.#begin(claim, token, leasedAt)
    return {
      started: claim.webhooks.length,
      full: claim.webhooks.length >= limit,
      nextDueInMs: claim.nextDueInMs,
      foreignEnvironment: claim.environment === environment ? null : { environment: claim.environment },
    }
  }

  /**
   * Stops: begins nothing new, lets what is being sent end until the deadline, breaks off the rest,
   * writes what became of it and gives the leases back.
   */
  async stop(options: { withinMs: number }): Promise<void> {
    const { clock } = this.#options.ports
    this.#stopping = true
    for (const lane of this.#lanes.values()) lane.stop()
    this.#flusher.request(0)
    const abandon = clock.setTimeout(() => {
      for (const lane of this.#lanes.values()) lane.abandon()
      this.#flusher.request(0)
    }, options.withinMs)
    // without a database the leases run out by themselves
    const giveUp = clock.setTimeout(() => {
      for (const lane of this.#lanes.values()) lane.lose()
    }, options.withinMs + stopGraceMs)
    await Promise.all(this.#running)
    clock.clearTimeout(abandon)
    clock.clearTimeout(giveUp)
    this.#flusher.close()
  }

  async #begin(claim: Claim, token: string, leasedAt: number): Promise<void> {
    if (claim.webhooks.length === 0) return
    const services = this.#services(this.#options.delivery(claim.installationId))
    const due = claim.webhooks.filter(({ dueInMs }) => dueInMs !== null && dueInMs <= 0).map(({ id }) => id)
    const loaded = due.length === 0 ? [] : await this.#loadDue(due)
    for (const webhook of claim.webhooks) {
      const lane = new Lane(webhook, token, leasedAt, services)
      this.#streams.set(webhook.streamId, webhook.stream)
      this.#lanes.set(webhook.id, lane)
      const mine = loaded.filter(({ webhookId }) => webhookId === webhook.id)
      const run: Promise<void> = lane.run(mine).then(() => this.#ended(lane, run))
      this.#running.add(run)
    }
    // from here on leases are renewed
    this.#flusher.request(this.#options.settings.leaseMs / 4)
  }

  /** Should it fail, each lane loads its own. */
  async #loadDue(ids: readonly string[]): ReturnType<typeof loadDueDeliveries> {
    try {
      return await loadDueDeliveries(this.#options.db, ids)
    } catch (error) {
      this.#options.ports.log.warn({ err: error }, 'due retries could not be loaded, trying again')
      return []
    }
  }

  #ended(lane: Lane, run: Promise<void>): void {
    this.#running.delete(run)
    if (this.#lanes.get(lane.webhook.id) === lane) this.#lanes.delete(lane.webhook.id)
    this.#laneEnded(lane.webhook.streamId)
  }

  #services(delivery: Delivery): LaneServices {
    const { db, ports, settings } = this.#options
    return {
      clock: ports.clock,
      reader: this.#reader,
      limiter: this.#limiter,
      loadDue: (ids) => loadDueDeliveries(db, ids),
      loadUnit: (webhookId, unit) => loadUnit(db, webhookId, unit),
      deliver: (webhook, event, signal) => delivery.attempt(webhook, event, signal),
      judge: (webhook, event, attempt, result) => delivery.judge(webhook, event, attempt, result),
      requestFlush: (withinMs) => this.#flusher.request(withinMs),
      onError: (error, webhookId) =>
        ports.log.warn({ err: error, webhookId }, 'a webhook waits for the database'),
      settings,
    }
  }
}

/** Time to write the last outcomes in, after the deadline. */
const stopGraceMs = 2_000
