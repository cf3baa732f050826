import type { Clock } from '../../ports.ts'
import type { StoredEvent } from '../../streams/event.ts'
import type { Cancel } from '../cancel.ts'
import type { Outcome } from '../outcome.ts'
import type { SendResult } from '../sender.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'
import type { Limiter } from './limiter.ts'
import type { LoadedDelivery } from './load-deliveries.ts'
import type { PageReader } from './page-reader.ts'

/** After a failed database call a lane pauses so long. */
export const errorPauseMs = 1_000

/** What a lane needs of the engine around it. */
export interface LaneServices {
  clock: Clock
  reader: PageReader
  limiter: Limiter
  loadDue(webhookIds: readonly string[]): Promise<LoadedDelivery[]>
  loadUnits(webhookId: string, units: readonly string[]): Promise<LoadedDelivery[]>
  /** Makes one attempt. Should it break in itself, the lane takes that for a failed one. */
  deliver(webhook: ClaimedWebhook, event: StoredEvent, cancel: Cancel): Promise<SendResult>
  /** @param attempt which attempt it was, from 1 */
  judge(webhook: ClaimedWebhook, event: StoredEvent, attempt: number, result: SendResult): Outcome
  /** Asks for a flush within so many milliseconds. */
  requestFlush(withinMs: number): void
  /** The lane is done: asks for the flush that gives its lease back, at once if it was told to stop. */
  requestRelease(atOnce: boolean): void
  /** How long a lane that has nothing to do keeps its lease. */
  lingerMs(): number
  /** A database call failed: the lane goes on after so many milliseconds. */
  onError(error: unknown, webhookId: string): number
  settings: LaneSettings
}

/** Bounds of a lane; every default says why in engine-settings.ts. */
export interface LaneSettings {
  leaseMs: number
  maxConcurrency: number
  maxWindow: number
  maxWindowBytes: number
  maxTroubledUnits: number
  flushMs: number
  lingerMs: number
  spillAfterMs: number
}
