/** How long a message waits after a failed attempt. */
export interface Backoff {
  /** The wait after the first attempt, at most. 0 to 604800000, default 1000. */
  baseMs?: number
  /** Each further wait is longer by this. 1 to 100, default 2. */
  factor?: number
  /** No wait is longer. 0 to 604800000, default 3600000 (an hour). */
  maxMs?: number
}

/** A message to be sent, its data already JSON text. */
export interface NewMessage {
  /** One JSON document, stored and handed out byte for byte (outer white space is trimmed). */
  dataText: string
  /** By which a claim may choose: 1 to 256 characters; absent or null: none. */
  type?: string | null
  /**
   * Messages of one key are worked one after the other, in the order they were sent, whatever their
   * priority; a delayed one holds up those behind it. 1 to 512 characters; absent or null: no order.
   */
  key?: string | null
  /** Metadata that travels with the message: at most 64 names, 8 KiB in all. */
  headers?: Record<string, string> | null
  /** Smaller is claimed first: -32768 to 32767, default 0. */
  priority?: number
  /** Not before so many milliseconds from now: 0 to 31622400000 (366 days), default 0. Not with `at`. */
  delayMs?: number
  /** Not before this time, by the database's clock. Not with `delayMs`. */
  at?: Date
  /** How often it may be claimed before it dies: 1 to 1000, default 10. */
  maxAttempts?: number
  /** How long a claim holds it, unless the claim says otherwise: 1 to 86400000, default 30000. */
  leaseMs?: number
  /** The wait between attempts. Half of each wait is fixed, half is drawn by lot. */
  backoff?: Backoff
  /** While this key's window lasts, no other message with it is sent to the queue: 1 to 256 characters. */
  dedupeKey?: string | null
  /** How long `dedupeKey` holds, from the send on: 1 to 2592000000 (30 days), default 86400000 (a day). */
  dedupeWindowMs?: number
}

/** What a settle names: a message, and the claim by which it is held. */
export interface Held {
  id: number
  /** The lease token that the claim gave. */
  lease: string
}

/** A message as a claim hands it out. */
export interface ClaimedMessage extends Held {
  /** Which attempt this is, from 1; the claim itself counts as one. */
  attempt: number
  maxAttempts: number
  /** How long the lease lasts from the claim on. */
  leaseMs: number
  priority: number
  type: string | null
  key: string | null
  /** The data, byte for byte as sent. */
  dataText: string
  headers: Record<string, string> | null
  /** By the database's clock. */
  sentAt: Date
  /** Why an earlier attempt failed, where its worker said so. */
  lastError: string | null
}
