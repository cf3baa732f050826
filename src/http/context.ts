import type { Hono } from 'hono'
import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
import type { ClaimWait } from '../queues/claim-or-wait.ts'
import type { AttachWake } from '../streams/subscribe.ts'
import type { Delivery } from '../webhooks/engine/engine.ts'
import type { Sealer } from '../webhooks/seal.ts'
import type { TargetPolicy } from '../webhooks/target-url.ts'
import type { ReadyReport } from './health.ts'

/** What {@link createApp} takes. */
export interface AppOptions {
  db: Db
  /** The key that may do everything: MILLRACE_ROOT_KEY. Must not be empty. */
  rootKey: string
  ports: Ports
  /** Which webhook URLs are taken. */
  targetPolicy: TargetPolicy
  /** Seals webhook secrets at rest; null stores them in the clear. */
  sealer: Sealer | null
  /**
   * The most the data of one event may have, in bytes of UTF-8: default 1,048,576 (1 MiB), minimum 1.
   * A whole publish request may have 64 KiB more, for what is around the data; a list of events shares
   * that. Requests that carry no events may have 64 KiB.
   */
  maxBodyBytes?: number
  /** Makes attempts, for test events; absent, this host cannot send them. */
  delivery?: (installationId: string) => Delivery
  /** Called after each publish that stored something: the place to start a drain. What it throws is logged. */
  afterPublish?: (info: PublishInfo) => void
  /** Called after a webhook was created, changed or deleted. What it throws is logged. */
  onWebhookChange?: (info: WebhookInfo) => void
  /** Wakes those who wait for events; default: they poll. */
  attach?: AttachWake
  /** Wakes claims that wait for messages; default: they poll. */
  claimWait?: ClaimWait
  /** Notify and listen on user channels; absent, the addresses answer that this host has none. */
  channels?: ChannelPort
  /** Aborts when the host shuts down: long polls and event streams end. */
  shutdown?: AbortSignal
  /** The Prometheus text of /metrics; absent, this host has none. */
  metrics?: () => Promise<string>
  /** Serves queues, topics, locks and schedules too: `workRoutes` of work-routes.ts. Default: the host does not. */
  workRoutes?: (app: Hono, options: AppOptions) => void
  /** Serves /openapi.json and /docs too: `docRoutes` of openapi/doc-routes.ts. Default: the host does not. */
  docRoutes?: (app: Hono) => void
  /** What /readyz reports: default, that the database answers and has its tables. */
  ready?: () => Promise<ReadyReport>
}

/** User channels, as a host has them. */
export interface ChannelPort {
  notify(channel: string, payload: string): Promise<void>
  /** Absent where no LISTEN connection is held. `ready` resolves once what is sent arrives, or rejects. */
  listen?(
    channel: string,
    options: { signal: AbortSignal },
  ): AsyncIterable<ChannelValue> & { ready: Promise<void> }
}

/** What a listener of a channel is told. */
export type ChannelValue =
  | { kind: 'notification'; channel: string; payload: string }
  | { kind: 'reconnected' }
  | { kind: 'lagged'; missed: number }

/** To which stream something was published. */
export interface PublishInfo {
  /** The database's number of the stream, by which wakes name it. */
  streamId: number
  stream: string
  /** The request that published, as it was handed to the app. */
  request: Request
}

/** Which webhook changed. */
export interface WebhookInfo {
  id: string
  change: 'created' | 'updated' | 'deleted' | 'revived'
}

/** Calls a hook of the host's; its failure is not the request's, which has already done its work. */
export function notifyHost<Info>(ports: Ports, hook: ((info: Info) => void) | undefined, info: Info): void {
  try {
    hook?.(info)
  } catch (error) {
    ports.log.error(
      { error: error instanceof Error ? error.message : typeof error },
      'a hook of the app threw',
    )
  }
}
