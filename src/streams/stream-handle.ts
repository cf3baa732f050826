import type { Db, TxOption } from '../db/port.ts'
import type { Clock } from '../ports.ts'
import { assertLocalName, assertReadableName } from '../schema/names.ts'
import type { PublishOptions } from './append-events.ts'
import { decodeWith, encodeWith, jsonCodec, type Codec } from './codec.ts'
import { getOffset, saveOffset, seekOffset } from './consumer-offsets.ts'
import { configureStream } from './configure-stream.ts'
import type { NewEvent, StoredEvent } from './event.ts'
import { assertEvents, publishEvents } from './publish-events.ts'
import { readEvents, type ReadRange } from './read-events.ts'
import { streamInfo, type Retention, type StreamInfo } from './stream-info.ts'
import { subscribeDecoded, type AttachWake, type SubscribeOptions, type Subscription } from './subscribe.ts'
import { trimStream } from './trim-stream.ts'
import { assertEvent } from './validate-event.ts'

/** Event types of a stream and the data of each: `{ 'order.created': { total: number } }`. */
export type EventMap = Record<string, unknown>

/** An event to publish. */
export type EventOf<Events extends EventMap> = {
  [Type in keyof Events & string]: {
    type: Type
    data: Events[Type]
    /** What it is about, the unit of per-key order. */
    key?: string | null
    headers?: Record<string, string> | null
  }
}[keyof Events & string]

/** An event that was read. */
export type ReadEventOf<Events extends EventMap> = {
  [Type in keyof Events & string]: Omit<StoredEvent, 'type'> & { type: Type; data: Events[Type] }
}[keyof Events & string]

/** A page of decoded events. */
export interface PageOf<Events extends EventMap> {
  events: ReadEventOf<Events>[]
  next: number
  horizon: number | null
  more: boolean
  held: boolean
}

/** A consumer of a stream. */
export interface ConsumerHandle<Events extends EventMap> {
  readonly name: string
  /** The saved offset; 0 before the first save. */
  offset(options?: TxOption): Promise<number>
  /** Saves how far it has come; saving less is a silent no-op (S3). Returns the offset that stands. */
  save(offset: number, options?: TxOption): Promise<number>
  /** Moves it, back or forth. */
  seek(offset: number, options?: TxOption): Promise<number>
  /** Reads on from the saved offset, without saving. */
  read(range?: Omit<ReadRange, 'after'>, options?: TxOption): Promise<PageOf<Events>>
  /** Follows the stream from the saved offset. */
  subscribe(options?: SubscribeOptions): Subscription<ReadEventOf<Events>>
}

/** A stream. */
export interface StreamHandle<Events extends EventMap> {
  readonly name: string
  /** Publishes one event; returns its offset. See publishEvents for what it guarantees and throws. */
  publish(event: EventOf<Events>, options?: PublishOptions): Promise<number>
  /** Publishes several, all or none; returns their offsets. */
  publishMany(events: readonly EventOf<Events>[], options?: PublishOptions): Promise<number[]>
  read(range?: ReadRange, options?: TxOption): Promise<PageOf<Events>>
  consumer(name: string): ConsumerHandle<Events>
  /** Deletes events up to an offset; returns how many. */
  trim(through: number, options?: TxOption): Promise<number>
  /** Null when the stream does not exist. */
  info(options?: TxOption): Promise<StreamInfo | null>
  /** Sets what the stream forgets. */
  configure(retention: Partial<Retention>, options?: TxOption): Promise<Retention>
}

/** What a handle stands on. */
export interface StreamParts {
  db: Db
  attach: AttachWake
  clock: Clock
  codec?: Codec
  /** Throws STORE_CLOSED once the store was closed, for the calls that would not get as far as the database. */
  assertOpen?: () => void
}

/**
 * A handle on a stream; makes no statement.
 *
 * @throws INVALID_NAME
 */
export function createStreamHandle<Events extends EventMap>(
  name: string,
  parts: StreamParts,
): StreamHandle<Events> {
  assertReadableName('stream', name)
  const { db, codec = jsonCodec } = parts
  const encode = (event: EventOf<Events>, at = ''): NewEvent => {
    assertEvent(event, at)
    const { type, data, key, headers } = event
    return { type, key, headers, dataText: encodeWith(codec, data, type) }
  }
  return {
    name,
    publish: async (event, options) =>
      (await publishEvents(db, name, [encode(event)], options)).offsets[0] ?? 0,
    async publishMany(events, options) {
      assertEvents(events)
      const encoded = events.map((event, index) => encode(event, `[${index}].`))
      return (await publishEvents(db, name, encoded, options)).offsets
    },
    read: (range, options) => readDecoded<Events>(parts, name, range, options),
    consumer: (consumer) => createConsumerHandle<Events>({ stream: name, consumer }, parts),
    async trim(through, options) {
      parts.assertOpen?.()
      return trimStream(db, name, through, options)
    },
    info: (options) => streamInfo(db, name, options),
    configure: (retention, options) => configureStream(db, name, retention, options),
  }
}

function createConsumerHandle<Events extends EventMap>(
  id: { stream: string; consumer: string },
  parts: StreamParts,
): ConsumerHandle<Events> {
  assertLocalName('consumer', id.consumer)
  const { db } = parts
  return {
    name: id.consumer,
    offset: (options) => getOffset(db, id, options),
    save: (offset, options) => saveOffset(db, id, offset, options),
    seek: (offset, options) => seekOffset(db, id, offset, options),
    read: async (range, options) =>
      readDecoded<Events>(parts, id.stream, { ...range, after: await getOffset(db, id, options) }, options),
    subscribe: (options = {}) =>
      subscribeDecoded(parts, id, options, (event) => decode<Events>(event, parts.codec)),
  }
}

function decode<Events extends EventMap>(event: StoredEvent, codec: Codec = jsonCodec): ReadEventOf<Events> {
  return { ...event, data: decodeWith(codec, event) } as ReadEventOf<Events>
}

async function readDecoded<Events extends EventMap>(
  { db, codec, assertOpen }: StreamParts,
  stream: string,
  range?: ReadRange,
  options?: TxOption,
): Promise<PageOf<Events>> {
  assertOpen?.()
  const page = await readEvents(db, stream, range, options)
  return { ...page, events: page.events.map((event) => decode<Events>(event, codec)) }
}
