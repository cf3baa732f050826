import type { ErrorCode } from '../errors/codes.ts'

/** Which types of event a stream holds, and the data of each: `{ 'order.created': { id: string } }`. */
export type AnyEvents = Record<string, unknown>

/** What {@link createClient} takes. */
export interface ClientOptions {
  /** Where the server answers, such as `http://localhost:8787`; a path in front of `/v1` is kept. */
  url: string
  /** The API key, or MILLRACE_ROOT_KEY; null or absent: none is sent. */
  key?: string | null
  /** Any fetch of the web standard. Default: the global one. */
  fetch?: typeof globalThis.fetch
  /** How long a request may take, on top of what it is asked to wait. Default 30,000 ms. */
  timeoutMs?: number
}

/** Every call can be given up. */
export interface CallOptions {
  signal?: AbortSignal | undefined
}

/** Which page of a list. */
export interface PageOptions<Cursor = string> extends CallOptions {
  /** 1 to 500, default 100. */
  limit?: number | undefined
  /** The `next` of the page before. */
  cursor?: Cursor | undefined
}

/** An event to publish: either `data`, or `dataText` to have the JSON kept byte for byte. */
export type NewEvent<Events extends object = AnyEvents> = {
  [Type in keyof Events & string]: {
    /** 1 to 256 characters. */
    type: Type
    /** What it is about, the unit of per-key order: 1 to 512 characters; absent or null: none. */
    key?: string | null
    /** At most 64 names, 8192 characters in all. */
    headers?: Record<string, string> | null
  } & ({ data: Events[Type]; dataText?: never } | { data?: never; dataText: string })
}[keyof Events & string]

/** An event as it was read. */
export type ReadEvent<Events extends object = AnyEvents> = {
  [Type in keyof Events & string]: {
    /** Ascending within the stream; gaps are legal. */
    offset: number
    type: Type
    key: string | null
    data: Events[Type]
    /** The data as it was published, byte for byte: JSON.parse rounds numbers above 2^53. */
    dataText: string
    headers: Record<string, string> | null
    publishedAt: Date
  }
}[keyof Events & string]

/** Options of publishing. */
export interface PublishOptions extends CallOptions {
  /** A repeat within 24 hours returns the first call's offsets: 1 to 256 printable ASCII characters. */
  idempotencyKey?: string | undefined
}

/** What publishing one event returns. */
export interface PublishedOne {
  offset: number
  /** The idempotency key was known: this is the first call's offset. */
  replayed: boolean
}

/** What publishing several events returns. */
export interface PublishedMany {
  /** In the order of the events. */
  offsets: number[]
  /** The idempotency key was known: these are the first call's offsets. */
  replayed: boolean
}

/** Options of reading. */
export interface ReadOptions extends CallOptions {
  /** Read what comes after this offset. Default 0: from the start. */
  after?: number | undefined
  /** Default 100, at most 1000; 0 and less reads nothing. */
  limit?: number | undefined
  /** Only these types; `*` at the end matches any rest. Default: all. */
  types?: readonly string[] | undefined
  /** How many seconds the server may wait for the first event, at most 30. Default: not at all. */
  waitSeconds?: number | undefined
}

/** A page of events. */
export interface EventPage<Events extends object = AnyEvents> {
  events: ReadEvent<Events>[]
  /** Pass it as `after` to read on. */
  next: number
  /** Up to here every publish is decided; nobody reads past it. Null at limit 0 and less, where nothing was asked. */
  horizon: number | null
}

/** Options of following. */
export interface FollowOptions extends Omit<ReadOptions, 'waitSeconds'> {
  /** How long each request waits at the server. Default 25, at most 30. */
  waitSeconds?: number | undefined
  /** How often to ask a server that does not wait. Default 1000 ms. */
  pollMs?: number | undefined
  /** Called when the server stops answering; following goes on by itself. */
  onInterrupted?: ((error: Error) => void) | undefined
  /** Called when it answers again. */
  onResumed?: (() => void) | undefined
}

/** What a webhook is made of. */
export interface WebhookInput {
  stream: string
  url: string
  /** Default: all. */
  types?: string[] | null
  /** Default `key`. */
  ordering?: 'stream' | 'key' | 'none'
  /** Default `now`. */
  from?: 'now' | 'start' | number
  /** Default `standard`. */
  format?: 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'
  /** Default: what `secret` is for, else `v1`. */
  signature?: 'v1' | 'v1a'
  /** Default: the server makes one. */
  secret?: string
  /** 1 to 50, default 10. */
  maxAttempts?: number
  /** Milliseconds before each attempt, the first one 0; null or absent: the default schedule. */
  scheduleMs?: number[] | null
  /** 0 to 100, default 20. */
  jitterPercent?: number
  /** 1000 to 30,000, default 15,000. */
  timeoutMs?: number
  /** Requests per second, 1 to 10,000; null or absent: unlimited. */
  rateLimit?: number | null
  headers?: Record<string, string> | null
}

/** What of a webhook can be changed. */
export type WebhookChange = Partial<
  Pick<
    WebhookInput,
    'url' | 'types' | 'maxAttempts' | 'scheduleMs' | 'jitterPercent' | 'timeoutMs' | 'rateLimit' | 'headers'
  >
>

/** A webhook as the server shows it. */
export interface Webhook {
  id: string
  stream: string
  url: string
  types: string[] | null
  ordering: 'stream' | 'key' | 'none'
  format: 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'
  signature: 'v1' | 'v1a'
  state: 'active' | 'paused' | 'disabled'
  stateReason: string | null
  maxAttempts: number
  scheduleMs: number[] | null
  jitterPercent: number
  timeoutMs: number
  rateLimit: number | null
  headers: Record<string, string>
  /** Every matching event up to here is delivered, or counted in `retrying`, `blocked` and `dead`. */
  offset: number
  /** Events between the offset and the horizon; at most 10,000 are counted, then `lagCapped` is true. */
  lag: number
  lagCapped: boolean
  retrying: number
  blocked: number
  dead: number
  /** ISO 8601, UTC. */
  createdAt: string
}

/** A new webhook with its secret, which is shown this once. */
export interface CreatedWebhook extends Webhook {
  secret: string
  /** For v1a: what receivers verify with. */
  publicKey?: string
}

/** Which webhooks to list. */
export interface WebhookListOptions extends CallOptions {
  /** 1 to 100, default 20. */
  limit?: number | undefined
  /** The `next` of the page before. */
  cursor?: string | undefined
  stream?: string | undefined
}

/** A page of webhooks. */
export interface WebhookPage {
  webhooks: Webhook[]
  /** The `cursor` of the next page; null: this was the last. */
  next: string | null
}

/** Whether the server can work. */
export interface Health {
  ready: boolean
  database: 'ok' | 'asleep' | ErrorCode
  migrations: 'ok' | 'pending' | 'unknown'
  /** How wakes arrive, where the process has a forwarder. */
  mode?: string
  /** The database belongs to another environment: nothing is delivered, fired or claimed. Absent: all is. */
  delivery?: 'foreign_environment'
}
