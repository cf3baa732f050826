import type { Changes, TakenChanges } from './changes.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import type { DeliveryRow, LaneFlush } from './flush-outcomes.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import type { Item } from './units.ts'
import type { Window } from './window.ts'

/** A lane's part of one flush, on its way. */
export interface FlyingFlush {
  flush: LaneFlush
  taken: TakenChanges
}

/** What a lane has to write, beside what it has written. */
export interface LaneFlushing {
  /** What to write now; null when there is nothing (and neither a renewal nor the release is asked for). */
  take(lease: Pick<LaneFlush, 'renew' | 'release'>): FlyingFlush | null
  /** The flush failed: what it carried goes into the next one. */
  failed(taken: TakenChanges): void
}

/** What {@link createLaneFlushing} takes. */
export interface LaneFlushingOptions {
  webhook: ClaimedWebhook
  token: string
  changes: Changes
  window: Window
  isSaturated: () => boolean
}

export function createLaneFlushing(options: LaneFlushingOptions): LaneFlushing {
  return new LaneParts(options)
}

class LaneParts implements LaneFlushing {
  readonly #options: LaneFlushingOptions
  #offset: number
  #saturated: boolean

  constructor(options: LaneFlushingOptions) {
    this.#options = options
    this.#offset = options.webhook.offset
    this.#saturated = options.webhook.saturated
  }

  take({ renew, release }: Pick<LaneFlush, 'renew' | 'release'>): FlyingFlush | null {
    const { webhook, token, changes, window } = this.#options
    const offset = window.lowWater()
    const saturated = this.#options.isSaturated()
    const moved = offset !== this.#offset || saturated !== this.#saturated
    if (!renew && !release && !moved && !changes.dirty) return null
    this.#offset = offset
    this.#saturated = saturated
    const taken = changes.take()
    const { id: webhookId, fence } = webhook
    return { taken, flush: toFlush({ webhookId, fence, token, renew, release, offset, saturated }, taken) }
  }

  failed(taken: TakenChanges): void {
    this.#options.changes.giveBack(taken)
    this.#offset = -1
  }
}

/** Most flushes of most lanes carry none. */
const none: never[] = []

/** Puts a lane's changes into the form that the flush statement takes. */
function toFlush(lane: Omit<LaneFlush, keyof TakenChanges>, taken: TakenChanges): LaneFlush {
  const { succeeded, failed, disable, log } = taken
  return {
    ...lane,
    succeeded,
    failed,
    disable,
    log,
    rows: taken.rows.size === 0 ? none : [...taken.rows.values()],
    promote: taken.promote.size === 0 ? none : [...taken.promote],
  }
}

/** The row of an item, such as its outcome or its waiting makes it. */
export function rowOf(item: Item, row: Pick<DeliveryRow, 'state'> & Partial<DeliveryRow>): DeliveryRow {
  const { unit, event } = item
  return {
    offset: event.offset,
    unit,
    attempts: 0,
    delayMs: 0,
    status: null,
    error: null,
    answer: null,
    ...row,
  }
}

/** A delivery whose event is still there, as an item to send. */
export function toItem(delivery: LoadedDelivery): Item {
  const { event, unit, attempts } = delivery
  if (event === null) throw new Error('a delivery without its event cannot be sent')
  return { event, unit, attempts, entry: null, hasRow: true }
}

/** A delivery whose event was trimmed away can only end as a dead letter that says so (W1). */
export function buriedRow(delivery: LoadedDelivery): DeliveryRow {
  const { offset, unit, attempts } = delivery
  const error = 'the event was trimmed from the stream before it could be delivered'
  return { offset, unit, attempts, state: 'dead', delayMs: 0, status: null, error, answer: null }
}
