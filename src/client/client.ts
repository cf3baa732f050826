import { createSend, jsonOf } from './request.ts'
import { createStream, type StreamClient } from './streams.ts'
import type { AnyEvents, CallOptions, ClientOptions, Health } from './types.ts'
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
    // 503 carries the same report
    health: async ({ signal } = {}) => jsonOf(await send({ path: '/readyz', signal, alsoOk: 503 })),
  }
}
