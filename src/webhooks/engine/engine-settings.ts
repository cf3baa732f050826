import type { LaneSettings } from './lane-services.ts'

/** Settings of the delivery engine; all durations in milliseconds. */
export interface EngineSettings extends LaneSettings {
  /** Webhooks worked on at once by one process. */
  maxLanes: number
  /** Sends at once, whatever the webhook. */
  maxSends: number
  /** Sends at once to one host. */
  maxSendsPerHost: number
}

export const defaultEngineSettings: EngineSettings = {
  // long enough that renewals are rare, short enough that a killed worker's webhooks move on soon
  leaseMs: 30_000,
  // one webhook saturates a receiver on the same continent (about 30 ms a request) at 1,000 a second
  maxConcurrency: 32,
  // what a crash may send again, at most; more than any concurrency needs
  maxWindow: 1024,
  maxWindowBytes: 8 * 1024 * 1024,
  // so many failing keys are a failing endpoint: further events wait in the stream
  maxTroubledUnits: 1000,
  // many outcomes share one statement; a crash repeats at most what was sent in this time
  flushMs: 100,
  // a webhook that has just been served keeps its lease a moment: the next event needs no claim
  lingerMs: 250,
  // a slow key is recorded as retrying and no longer holds the offset back
  spillAfterMs: 1_000,
  // a few KB each; an event to a thousand webhooks is one round
  maxLanes: 1024,
  // the kernel and the receivers queue the rest; memory stays flat
  maxSends: 256,
  maxSendsPerHost: 128,
}
