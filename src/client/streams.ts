import { isMillraceError } from '../errors/millrace-error.ts'
import { bodyOf } from './data.ts'
import { eventText, getEvents, postEvents, toPublishedMany, toPublishedOne } from './events.ts'
import { follow } from './follow.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type {
  AnyEvents,
  CallOptions,
  EventPage,
  FollowOptions,
  NewEvent,
  PublishedMany,
  PublishedOne,
  PublishOptions,
  ReadEvent,
  ReadOptions,
} from './types.ts'

/** A stream at the server. */
export interface StreamClient<Events extends object = AnyEvents> {
  readonly name: string
  /**
   * Publishes one event; the stream is made with its first.
   *
   * @throws INVALID_INPUT, INVALID_NAME, INVALID_JSON, BODY_TOO_LARGE, IDEMPOTENCY_CONFLICT and whatever
   *   every call can throw: UNAUTHORIZED, FORBIDDEN, SERVER_UNREACHABLE, ABORTED, DATABASE_UNAVAILABLE, INTERNAL
   */
  publish(event: NewEvent<Events>, options?: PublishOptions): Promise<PublishedOne>
  /** Publishes 1 to 10,000 events, all or none; see {@link StreamClient.publish}. */
  publishMany(events: readonly NewEvent<Events>[], options?: PublishOptions): Promise<PublishedMany>
  /** As `publishMany`, from lines of JSON `{"type":…,"data":…,"key"?:…,"headers"?:…}`. */
  publishNdjson(text: string, options?: PublishOptions): Promise<PublishedMany>
  /**
   * Reads a page of events in the order of their offsets. A stream that does not exist reads as empty.
   *
   * @throws OFFSET_AHEAD when `after` is beyond everything ever numbered
   */
  read(options?: ReadOptions): Promise<EventPage<Events>>
  /**
   * Yields the events after an offset, and on and on as they come, until the signal aborts. It outlives
   * restarts of the server.
   *
   * @example
   * for await (const event of client.stream('orders').follow({ after: saved })) handle(event)
   */
  follow(options?: FollowOptions): AsyncGenerator<ReadEvent<Events>, void, undefined>
  /** The horizon at this moment: `follow({ after: await stream.head() })` yields what comes from now on. */
  head(options?: CallOptions): Promise<number>
  /** Whether there is such a stream: it begins with its first event. */
  exists(options?: CallOptions): Promise<boolean>
  /** A consumer of this stream, by name: 1 to 128 characters. */
  consumer(name: string): ConsumerClient<Events>
}

/** A name with a saved offset in a stream. */
export interface ConsumerClient<Events extends object = AnyEvents> {
  readonly name: string
  /** The saved offset; 0 before the first save. */
  offset(options?: CallOptions): Promise<number>
  /** Reads what comes after the saved offset. Reading saves nothing. */
  read(options?: Pick<ReadOptions, 'limit' | 'types' | 'signal'>): Promise<EventPage<Events>>
  /**
   * Saves how far it has come; saving less than before is a silent no-op. Returns what stands.
   *
   * @throws NOT_FOUND (no such stream), OFFSET_AHEAD, INVALID_INPUT
   */
  save(offset: number, options?: CallOptions): Promise<number>
  /** Moves the saved offset, back or forth. Returns it. Throws as `save` does. */
  seek(offset: number, options?: CallOptions): Promise<number>
}

/** @throws INVALID_NAME for names that a URL cannot carry */
export function createStream<Events extends object>(send: Send, name: string): StreamClient<Events> {
  const path = `/v1/streams/${segment('stream', name)}`
  const read: StreamClient<Events>['read'] = (options = {}) => getEvents(send, `${path}/events`, options)
  return {
    name,
    async publish(event, options = {}) {
      return toPublishedOne(await postEvents(send, name, { text: eventText(event as NewEvent) }, options))
    },
    async publishMany(events, options = {}) {
      const texts = events.map((event, index) => eventText(event as NewEvent, `[${index}].`))
      return toPublishedMany(await postEvents(send, name, { text: `[${texts.join(',')}]` }, options))
    },
    async publishNdjson(text, options = {}) {
      const body = { text, contentType: 'application/x-ndjson' }
      return toPublishedMany(await postEvents(send, name, body, options))
    },
    read,
    follow: (options = {}) => follow(read, options),
    // any page tells the horizon; the smallest one is cheapest
    head: async (options = {}) => (await read({ ...options, limit: 1 })).horizon ?? 0,
    async exists({ signal } = {}) {
      try {
        await send({ path, signal })
        return true
      } catch (error) {
        if (isMillraceError(error) && error.code === 'NOT_FOUND') return false
        throw error
      }
    },
    consumer: (consumer) => createConsumer(send, path, consumer),
  }
}

function createConsumer<Events extends object>(
  send: Send,
  streamPath: string,
  name: string,
): ConsumerClient<Events> {
  const path = `${streamPath}/consumers/${segment('consumer', name)}`
  const move = async (
    request: { method: 'PUT' | 'POST'; path: string },
    offset: number,
    { signal }: CallOptions = {},
  ): Promise<number> => {
    const answer = await send({ ...request, body: bodyOf({ offset }), signal })
    return jsonOf<{ offset: number }>(answer).offset
  }
  return {
    name,
    offset: async ({ signal } = {}) => jsonOf<{ offset: number }>(await send({ path, signal })).offset,
    read: ({ limit, types, signal } = {}) => getEvents(send, `${path}/events`, { limit, types, signal }),
    save: (offset, options) => move({ method: 'PUT', path }, offset, options),
    seek: (offset, options) => move({ method: 'POST', path: `${path}/seek` }, offset, options),
  }
}
