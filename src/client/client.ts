import { bodyOf } from './data.ts'
import { createKeys, type KeysClient } from './keys.ts'
import { createLock, type LockClient } from './locks.ts'
import { createQueue, listQueues, type QueueClient } from './queues.ts'
import { createSend, jsonOf, segment } from './request.ts'
import { createSchedules, type SchedulesClient } from './schedules.ts'
import { createStream, type StreamClient } from './streams.ts'
import { createTopic, listTopics, type TopicClient } from './topics.ts'
import type { AnyEvents, CallOptions, ClientOptions, Health, PageOptions } from './types.ts'
import { createWebhooks, type WebhooksClient } from './webhooks.ts'

/** A Millrace server, over HTTP. */
export interface Client {
  /**
   * A stream by name, typed by the events it holds.
   *
   * @example
   * type OrderEvents = { 'order.created': { id: string } }
   * await client.stream<OrderEvents>('orders').publish({ type: 'order.created', data: { id: 'o_1' } })
   * @throws INVALID_NAME
   */
  stream<Events extends object = AnyEvents>(name: string): StreamClient<Events>
  readonly webhooks: WebhooksClient
  /** A queue by name. @throws INVALID_NAME */
  queue(name: string): QueueClient
  /** A page of the queues, by name, with what is in them. */
  queues(options?: PageOptions): ReturnType<typeof listQueues>
  /** A topic by name. @throws INVALID_NAME */
  topic(name: string): TopicClient
  /** A page of the topics that something is bound to, by name. */
  topics(options?: PageOptions): ReturnType<typeof listTopics>
  /** A lock by name. @throws INVALID_NAME */
  lock(name: string): LockClient
  readonly schedules: SchedulesClient
  readonly keys: KeysClient
  /** Notifies a channel: at most 7999 bytes. @throws PAYLOAD_TOO_LARGE, INVALID_NAME */
  notify(channel: string, payload: string, options?: CallOptions): Promise<void>
  /** Whether the server can work: it answers this also when it cannot. Needs no key. */
  health(options?: CallOptions): Promise<Health>
}

/**
 * Makes a client. It holds no connection and needs no closing, and runs wherever there is a `fetch`:
 * Node, Deno, browsers, Cloudflare Workers.
 *
 * Every failure is a MillraceError with the server's code and details; a server that does not answer
 * is SERVER_UNREACHABLE.
 *
 * @throws INVALID_INPUT (fields `url`, `key`)
 */
export function createClient(options: ClientOptions): Client {
  const send = createSend(options)
  return {
    stream: (name) => createStream(send, name),
    webhooks: createWebhooks(send),
    queue: (name) => createQueue(send, name),
    queues: (options) => listQueues(send, options),
    topic: (name) => createTopic(send, name),
    topics: (options) => listTopics(send, options),
    lock: (name) => createLock(send, name),
    schedules: createSchedules(send),
    keys: createKeys(send),
    async notify(channel, payload, { signal } = {}) {
      const path = `/v1/channels/${segment('channel', channel)}`
      await send({ method: 'POST', path, body: bodyOf({ payload }), signal })
    },
    // 503 carries the same report
    health: async ({ signal } = {}) => jsonOf(await send({ path: '/readyz', signal, alsoOk: 503 })),
  }
}
