import type { Context, Hono } from 'hono'
import * as v from 'valibot'
import { MillraceError } from '../errors/millrace-error.ts'
import { parseShape } from '../json/shape.ts'
import { scopes } from '../keys/api-key.ts'
import { createKey } from '../keys/create-key.ts'
import { listKeys } from '../keys/list-keys.ts'
import { revokeKey } from '../keys/revoke-key.ts'
import type { Granted } from './access.ts'
import type { Gate } from './auth.ts'
import { readJsonObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { pageLimit, queryOf, single } from './query.ts'
import { resource, type Handler } from './resource.ts'

const collection = '/v1/keys'
const item = '/v1/keys/:id'

const input = v.strictObject({
  name: v.string(),
  scopes: v.array(v.picklist(scopes)),
  streamPrefix: v.optional(v.nullable(v.string())),
})

/** `POST` and `GET /v1/keys`, `DELETE /v1/keys/{id}`: for the root key, and API keys that may manage. */
export function keyRoutes(app: Hono, options: AppOptions, gate: Gate): void {
  resource(app, collection, { POST: create(options), GET: list(options) })
  resource(app, item, { DELETE: revoke(options, gate) })
}

/** Nobody gives away more than it has. */
function create({ db }: AppOptions): Handler<typeof collection> {
  return async (c) => {
    queryOf(c.req.raw, [])
    const wanted = parseShape(input, await readJsonObject(c.req.raw), 'body')
    const own = (c as unknown as Context<Granted>).get('grant')?.scopes ?? []
    const scope = wanted.scopes.find((one) => !own.includes(one))
    if (scope !== undefined) {
      throw new MillraceError('FORBIDDEN', `the API key lacks the scope "${scope}" itself`, {
        details: { scope },
      })
    }
    return c.json(await createKey(db, wanted), 201)
  }
}

function list({ db }: AppOptions): Handler<typeof collection> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['cursor', 'limit'])
    return c.json(await listKeys(db, { after: single(query, 'cursor'), limit: pageLimit(query) }))
  }
}

function revoke({ db }: AppOptions, gate: Gate): Handler<typeof item> {
  return async (c) => {
    queryOf(c.req.raw, [])
    if (!(await revokeKey(db, c.req.param('id'))))
      throw new MillraceError('NOT_FOUND', 'there is no such key')
    gate.forget()
    return c.body(null, 204)
  }
}
