import type { Hono } from 'hono'
import { createWebhook } from '../webhooks/create-webhook.ts'
import { deleteWebhook } from '../webhooks/delete-webhook.ts'
import { getWebhook } from '../webhooks/get-webhook.ts'
import { listWebhooks } from '../webhooks/list-webhooks.ts'
import { updateWebhook } from '../webhooks/update-webhook.ts'
import type { WebhookChange, WebhookInput } from '../webhooks/webhook-input.ts'
import { readJsonObject } from './body.ts'
import { notifyHost, type AppOptions, type WebhookInfo } from './context.ts'
import { queryOf, single, wholeNumber } from './query.ts'
import { resource, type Handler } from './resource.ts'

const collection = '/v1/webhooks'
const item = '/v1/webhooks/:id'

/** `POST` and `GET /v1/webhooks`, `GET`, `PATCH` and `DELETE /v1/webhooks/{id}`. */
export function webhookRoutes(app: Hono, options: AppOptions): void {
  resource(app, collection, { POST: create(options), GET: list(options) })
  resource(app, item, { GET: read(options), PATCH: update(options), DELETE: remove(options) })
}

function create(options: AppOptions): Handler<typeof collection> {
  const rules = { sealer: options.sealer, policy: options.targetPolicy }
  return async (c) => {
    queryOf(c.req.raw, [])
    const created = await createWebhook(options.db, (await readJsonObject(c.req.raw)) as WebhookInput, rules)
    changed(options, { id: created.id, change: 'created' })
    return c.json(created, 201)
  }
}

/** `?limit=` 1 to 100 (default 20), `?cursor=` the `next` of the last page, `?stream=` only that one's. */
function list(options: AppOptions): Handler<typeof collection> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['limit', 'cursor', 'stream'])
    const limit = wholeNumber(query, 'limit')
    const cursor = single(query, 'cursor')
    const stream = single(query, 'stream')
    const page = await listWebhooks(options.db, {
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
      ...(stream === undefined ? {} : { stream }),
    })
    return c.json(page)
  }
}

function read(options: AppOptions): Handler<typeof item> {
  return async (c) => {
    queryOf(c.req.raw, [])
    return c.json(await getWebhook(options.db, c.req.param('id')))
  }
}

function update(options: AppOptions): Handler<typeof item> {
  const rules = { policy: options.targetPolicy }
  return async (c) => {
    queryOf(c.req.raw, [])
    const change = (await readJsonObject(c.req.raw)) as WebhookChange
    const updated = await updateWebhook(options.db, c.req.param('id'), change, rules)
    changed(options, { id: updated.id, change: 'updated' })
    return c.json(updated)
  }
}

function remove(options: AppOptions): Handler<typeof item> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const id = c.req.param('id')
    await deleteWebhook(options.db, id, { clock: options.ports.clock })
    changed(options, { id, change: 'deleted' })
    return c.body(null, 204)
  }
}

function changed(options: AppOptions, info: WebhookInfo): void {
  notifyHost(options.ports, options.onWebhookChange, info)
}
