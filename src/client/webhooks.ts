import { bodyOf } from './data.ts'
import { createWebhookActions, type WebhookActions } from './webhook-actions.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type {
  CallOptions,
  CreatedWebhook,
  Webhook,
  WebhookChange,
  WebhookInput,
  WebhookListOptions,
  WebhookPage,
} from './types.ts'

/** The webhooks of the server. */
export interface WebhooksClient extends WebhookActions {
  /**
   * Makes a webhook, and its stream if there is none of the name. The secret is shown this once.
   *
   * @throws INVALID_INPUT, INVALID_NAME, TARGET_FORBIDDEN, OFFSET_AHEAD
   */
  create(input: WebhookInput, options?: CallOptions): Promise<CreatedWebhook>
  /** A page of them, by id. */
  list(options?: WebhookListOptions): Promise<WebhookPage>
  /** @throws NOT_FOUND */
  get(id: string, options?: CallOptions): Promise<Webhook>
  /**
   * Changes what is named; null takes the default again.
   *
   * @throws NOT_FOUND, INVALID_INPUT, TARGET_FORBIDDEN
   */
  update(id: string, change: WebhookChange, options?: CallOptions): Promise<Webhook>
  /** @throws NOT_FOUND */
  delete(id: string, options?: CallOptions): Promise<void>
}

const collection = '/v1/webhooks'

export function createWebhooks(send: Send): WebhooksClient {
  const item = (id: string): string => `${collection}/${segment('webhook', id)}`
  return {
    ...createWebhookActions(send, item),
    async create(input, { signal } = {}) {
      return jsonOf(await send({ method: 'POST', path: collection, body: bodyOf(input), signal }))
    },
    async list({ limit, cursor, stream, signal } = {}) {
      return jsonOf(await send({ path: collection, query: { limit, cursor, stream }, signal }))
    },
    async get(id, { signal } = {}) {
      return jsonOf(await send({ path: item(id), signal }))
    },
    async update(id, change, { signal } = {}) {
      return jsonOf(await send({ method: 'PATCH', path: item(id), body: bodyOf(change), signal }))
    },
    async delete(id, { signal } = {}) {
      await send({ method: 'DELETE', path: item(id), signal })
    },
  }
}
