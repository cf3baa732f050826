import type { Db } from '../db/port.ts'
import type { Ports } from '../ports.ts'
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
  /** Called after each publish that stored something: the place to start a drain. What it throws is logged. */
  afterPublish?: (info: PublishInfo) => void
  /** Called after a webhook was created, changed or deleted. What it throws is logged. */
  onWebhookChange?: (info: WebhookInfo) => void
  /** What /readyz reports: default, that the database answers and has its tables. */
  ready?: () => Promise<ReadyReport>
}

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
  change: 'created' | 'updated' | 'deleted'
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
