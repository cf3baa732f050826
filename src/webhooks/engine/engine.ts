import type { Db } from '../../db/port.ts'
import type { Ports, TimerHandle } from '../../ports.ts'
import type { StoredEvent } from '../../streams/event.ts'
import type { Outcome } from '../outcome.ts'
import type { Cancel } from '../cancel.ts'
import type { SendResult } from '../sender.ts'
import { unlimited, type Allowance } from './allowance.ts'
import type { Claim, ClaimedWebhook, ClaimScope } from './claim-webhooks.ts'
import type { EngineSettings } from './engine-settings.ts'
import { createFlusher, type Flusher } from './flusher.ts'
import type { LaneServices } from './lane-services.ts'
import { Lane } from './lane.ts'
import { createLimiter, type Limiter } from './limiter.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import { createPageReader, type PageReader } from './page-reader.ts'
import { createStatements, type Statements } from './statements.ts'
import { createTroubles, type Troubles } from './troubles.ts'

/** Makes attempts and judges them; see attempt.ts for the real one. */
export interface Delivery {
  /** Makes one attempt to deliver an event to a webhook. */
  attempt(webhook: ClaimedWebhook, event: StoredEvent, cancel: Cancel): Promise<SendResult>
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
  /** The master keys that this process knows (see {@link Sealer}); default: none, for secrets in the clear. */
  keyIds?: readonly string[]
  /** How many statements and sends the platform lets it make; it stops clean before the last. Default: any number. */
  allowance?: Allowance
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
  readonly #statements: Statements
  readonly #reader: PageReader
  readonly #flusher: Flusher
  readonly #limiter: Limiter
  readonly #troubles: Troubles
  readonly #streams = new Map<number, string>()
  /** Streams of which every active webhook was being worked on here when they were last claimed, and still is. */
  readonly #whole = new Set<number>()
  #laneEnded: (streamId: number, progressed: boolean) => void = () => {}
  #stopping = false
  /** Webhooks of which the log has said that they cannot be signed for. */
  readonly #unreadable = new Set<string>()

  constructor(options: EngineOptions) {
    this.#options = options
    const { db, ports, settings, allowance = unlimited } = options
    this.#statements = createStatements(db, allowance)
    this.#troubles = createTroubles(ports)
    allowance.onLow(() => this.#windDown())
    this.#reader = createPageReader((stream, after) => this.#statements.readPage(stream, after))
    this.#limiter = createLimiter({
      clock: ports.clock,
      total: settings.maxSends,
      perHost: settings.maxSendsPerHost,
      allowance,
    })
    this.#flusher = createFlusher({
      clock: ports.clock,
      lanes: () => this.#lanes.values(),
      flush: (lanes) => this.#statements.flush(lanes, settings.leaseMs),
      onError: (error) =>
        ports.log.warn({ err: error }, 'delivery outcomes could not be written, trying again'),
      leaseMs: settings.leaseMs,
    })
  }

  /** Webhooks being worked on. */
  get active(): number {
    return this.#lanes.size
  }

  /** Requests on their way. */
  get sending(): number {
    return this.#limiter.taken
  }

  /**
   * Called whenever a webhook is done with for now. What was published while its lease was being given
   * back may have been claimed by nobody, so who drives the engine claims the stream once more.
   *
   * @param callback told whether anything was done; if not, what there is lies above the horizon, held
   *   back by a publisher whose end, if it is a rollback, wakes nobody: to be looked at after a pause
   */
  onLaneEnd(callback: (streamId: number, progressed: boolean) => void): void {
    this.#laneEnded = callback
  }

  /**
   * A stream may have new events: the webhooks that are being worked on look again.
   *
   * @returns whether there are any
   */
  wake(streamId: number): boolean {
    const stream = this.#streams.get(streamId)
    if (stream === undefined) return false
    this.#reader.wake(stream)
    let any = false
    const waiting = new Map<number, Lane[]>()
    for (const lane of this.#lanes.values()) {
      if (lane.webhook.streamId !== streamId || lane.isDone()) continue
      any = true
      const after = lane.wake()
      if (after === null) continue
      const others = waiting.get(after)
      if (others === undefined) waiting.set(after, [lane])
      else others.push(lane)
    }
    for (const [after, lanes] of waiting) void this.#readFor(lanes, stream, after)
    return any
  }

  /** Whether all webhooks of the stream are being worked on here, as far as is known: none is left to claim. */
  holdsAll(streamId: number): boolean {
    return this.#whole.has(streamId)
  }

  /** A page that a thousand lanes wait for is asked for before they are, and each finds it there. */
  async #readFor(lanes: readonly Lane[], stream: string, after: number): Promise<void> {
    // should it fail, they read it themselves, and each tells of the failure
    await this.#reader.read(stream, after).catch(() => {})
    for (const lane of lanes) lane.look()
  }

  /** As {@link wake}, for every stream: after a lost connection anything may have happened. */
  wakeAll(): void {
    for (const streamId of this.#streams.keys()) this.wake(streamId)
  }

  /** A webhook was changed: its lane, if it has one, asks the database how it stands. */
  recheck(webhookId: string): boolean {
    const lane = this.#lanes.get(webhookId)
    if (lane === undefined) return false
    // the next flush asks how it stands, whatever there is to write
    lane.lease.age()
    this.#flusher.request(0)
    return true
  }

  /** Claims what the scope holds and room allows, and begins to work on it. One statement, and one more with due retries. */
  async claim(scope: ClaimScope): Promise<ClaimReport> {
    const { ports, settings, environment, keyIds } = this.#options
    const limit = settings.maxLanes - this.#lanes.size
    if (limit <= 0 || this.#stopping)
      return { started: 0, full: true, nextDueInMs: null, foreignEnvironment: null }
    const token = crypto.randomUUID()
    const leasedAt = ports.clock.now()
    const { leaseMs } = settings
    const [claim] = await Promise.all([
      this.#statements.claim({ scope, token, leaseMs, limit, environment, keyIds }),
      this.#readAhead(scope),
    ])
    this.#tellUnreadable(claim.unreadable)
    await this.#begin(claim, token, leasedAt)
    for (const [streamId, active] of claim.activeOf) this.#noteWhole(streamId, active)
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
    this.#windDown()
    this.#flusher.request(0)
    const abandon = clock.setTimeout(() => {
      for (const lane of this.#lanes.values()) lane.abandon()
      this.#flusher.request(0)
    }, options.withinMs)
    let giveUp: TimerHandle | undefined
    // without a database the leases run out by themselves
    const grace = new Promise<void>((resolve) => {
      giveUp = clock.setTimeout(() => {
        for (const lane of this.#lanes.values()) lane.lose()
        resolve()
      }, options.withinMs + stopGraceMs)
    })
    await Promise.race([this.#allEnded(), grace])
    for (const timer of [abandon, giveUp]) if (timer !== undefined) clock.clearTimeout(timer)
    this.#flusher.close()
  }

  /**
   * What the webhooks of a stream that was just worked on will ask for, read while they are claimed: the
   * first event after a pause is sent one round trip sooner. Where several workers serve the stream, the
   * page is read in vain now and then.
   */
  async #readAhead(scope: ClaimScope): Promise<void> {
    if (scope.kind !== 'streams' || scope.streamIds.length > 1) return
    const stream = this.#streams.get(scope.streamIds[0] ?? 0)
    if (stream !== undefined && this.#options.allowance === undefined) await this.#reader.readOn(stream)
  }

  #windDown(): void {
    this.#stopping = true
    for (const lane of this.#lanes.values()) lane.stop()
  }

  async #allEnded(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  async #begin(claim: Claim, token: string, leasedAt: number): Promise<void> {
    if (claim.webhooks.length === 0) return
    const services = this.#services(this.#options.delivery(claim.installationId))
    const due = claim.webhooks.filter(({ dueInMs }) => dueInMs !== null && dueInMs <= 0).map(({ id }) => id)
    const loaded = due.length === 0 ? [] : await this.#loadDue(due)
    this.#lookAgain(claim.webhooks)
    for (const webhook of claim.webhooks) {
      // the database has just handed its lease to another: this one
      this.#lanes.get(webhook.id)?.lose()
      const lane = new Lane(webhook, token, leasedAt, services)
      this.#lanes.set(webhook.id, lane)
      if (this.#stopping) lane.stop()
      const mine = loaded.filter(({ webhookId }) => webhookId === webhook.id)
      const run: Promise<void> = lane.run(mine).then(() => this.#ended(lane, run))
      this.#running.add(run)
      if (this.#stopping) lane.stop()
    }
    // from here on leases are renewed
    this.#flusher.request(this.#options.settings.leaseMs / 4)
  }

  #noteWhole(streamId: number, active: number): void {
    let mine = 0
    for (const lane of this.#lanes.values()) if (lane.webhook.streamId === streamId && !lane.isDone()) mine++
    if (mine >= active) this.#whole.add(streamId)
    else this.#whole.delete(streamId)
  }

  /** Once of each: their events wait, and every claim finds them again. */
  #tellUnreadable(ids: readonly string[]): void {
    const news = ids.filter((id) => !this.#unreadable.has(id))
    if (news.length === 0) return
    if (this.#unreadable.size > maxKeptUnreadable) this.#unreadable.clear()
    for (const id of news) this.#unreadable.add(id)
    this.#options.ports.log.error({ webhookIds: news }, unreadable)
  }

  /** What the claim saw of a stream may be newer than the pages in memory, also where no wakes arrive. */
  #lookAgain(webhooks: readonly ClaimedWebhook[]): void {
    const heads = new Map<string, number>()
    for (const { streamId, stream, head, offset } of webhooks) {
      this.#streams.set(streamId, stream)
      if (head !== null && head > offset) heads.set(stream, head)
    }
    for (const [stream, head] of heads) this.#reader.reaches(stream, head)
  }

  /** Should it fail, each lane loads its own. */
  async #loadDue(ids: readonly string[]): Promise<LoadedDelivery[]> {
    try {
      return await this.#statements.loadDue(ids)
    } catch (error) {
      this.#options.ports.log.warn({ err: error }, 'due retries could not be loaded, trying again')
      return []
    }
  }

  #ended(lane: Lane, run: Promise<void>): void {
    this.#running.delete(run)
    if (this.#lanes.get(lane.webhook.id) === lane) this.#lanes.delete(lane.webhook.id)
    this.#whole.delete(lane.webhook.streamId)
    this.#laneEnded(lane.webhook.streamId, lane.progressed)
  }

  /** A drain gives leases back at once, but several with one statement while others are still at work. */
  #requestRelease(atOnce: boolean): void {
    const { lingerMs, flushMs } = this.#options.settings
    const last = [...this.#lanes.values()].every((lane) => lane.isDone())
    this.#flusher.request(atOnce || (last && lingerMs === 0) ? 0 : flushMs)
  }

  #services(delivery: Delivery): LaneServices {
    const { ports, settings } = this.#options
    return {
      clock: ports.clock,
      reader: this.#reader,
      limiter: this.#limiter,
      loadDue: (ids) => this.#statements.loadDue(ids),
      loadUnits: (webhookId, units) => this.#statements.loadUnits(webhookId, units),
      deliver: (webhook, event, cancel) => delivery.attempt(webhook, event, cancel),
      judge: (webhook, event, attempt, result) => delivery.judge(webhook, event, attempt, result),
      requestFlush: (withinMs) => this.#flusher.request(withinMs),
      requestRelease: (atOnce) => this.#requestRelease(atOnce),
      // at the limit others may be waiting for their turn
      lingerMs: () => (this.#lanes.size >= settings.maxLanes ? 0 : settings.lingerMs),
      onError: (error, webhookId) => this.#troubles.met(error, webhookId),
      settings,
    }
  }
}

const maxKeptUnreadable = 1_000
const unreadable =
  'signing secrets were sealed under a master key that is not known here, so nothing is delivered to these webhooks: is MILLRACE_ENCRYPTION_KEY the right one?'

/** Time to write the last outcomes in, after the deadline. */
const stopGraceMs = 2_000
