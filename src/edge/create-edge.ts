import type { Hono } from 'hono'
import { createNeonHttpDb } from '../db/drivers/neon-http.ts'
import type { GatewayAddress } from '../db/drivers/neon-gateway.ts'
import type { Db } from '../db/port.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { createApp } from '../http/app.ts'
import type { Ports } from '../ports.ts'
import { readSettings, type Environment, type Settings } from '../settings.ts'
import { createDelivery } from '../webhooks/deliver-event.ts'
import type { ClaimScope } from '../webhooks/engine/claim-webhooks.ts'
import { drain, type DrainReport } from '../webhooks/engine/drain.ts'
import { createFetchSender } from '../webhooks/fetch-sender.ts'
import { createSealer, type Sealer } from '../webhooks/seal.ts'
import { createSigner } from '../webhooks/sign.ts'

/** What an invocation can be kept alive with: Cloudflare's ExecutionContext, or the like. */
export interface Invocation {
  waitUntil(promise: Promise<unknown>): void
}

/** Millrace for a platform without processes: requests, and bounded drains. */
export interface Edge {
  /** Answers a request; after a publish a drain of the stream goes on beyond the answer. */
  fetch(request: Request, env: Environment, invocation: Invocation): Promise<Response>
  /** One bounded drain of everything that is due: for a cron trigger. */
  drainAll(env: Environment, budgetMs: number): Promise<DrainReport>
}

/** `waitUntil` keeps a Cloudflare worker for 30 s at most. */
const afterPublishBudgetMs = 25_000

/** What is made once for an isolate and its environment: nothing here holds a connection. */
interface Parts {
  settings: Settings
  db: Db
  sealer: Sealer | null
}

export function createEdge(ports: Ports): Edge {
  const partsOf = createPartsCache()

  async function runDrain(env: Environment, scope: ClaimScope, budgetMs: number): Promise<DrainReport> {
    const { settings, db, sealer } = await partsOf(env)
    const policy = { allowInsecure: settings.allowInsecureTargets }
    const sender = createFetchSender({ fetch: (url, init) => ports.fetch(url, init), policy })
    try {
      const delivery = createDelivery({ sender, createSigner, sealer, ports })
      return await drain({ db, ports, delivery, environment: settings.environment, scope, budgetMs })
    } finally {
      await sender.close()
    }
  }

  return {
    async fetch(request, env, invocation) {
      const parts = await partsOf(env)
      const afterPublish = ({ streamId }: { streamId: number }): void => {
        const scope: ClaimScope = { kind: 'streams', streamIds: [streamId] }
        const run = runDrain(env, scope, afterPublishBudgetMs)
        invocation.waitUntil(
          run.catch((error) => ports.log.error({ err: error }, 'the drain after a publish failed')),
        )
      }
      return appOf(parts, ports, afterPublish).fetch(request)
    },
    drainAll: (env, budgetMs) => runDrain(env, { kind: 'all' }, budgetMs),
  }
}

function appOf(
  { settings, db, sealer }: Parts,
  ports: Ports,
  afterPublish: (info: { streamId: number }) => void,
): Hono {
  const { rootKey, allowInsecureTargets } = settings
  if (rootKey === null) throw new MillraceError('INVALID_SETTING', 'MILLRACE_ROOT_KEY is not set')
  return createApp({
    db,
    rootKey,
    ports,
    targetPolicy: { allowInsecure: allowInsecureTargets },
    sealer,
    afterPublish,
  })
}

/** Bindings do not change within an isolate, but tests and platforms may run several environments in one. */
function createPartsCache() {
  const cache = new WeakMap<Environment, Promise<Parts>>()
  return (env: Environment): Promise<Parts> => {
    let parts = cache.get(env)
    if (parts === undefined) cache.set(env, (parts = makeParts(env)))
    return parts
  }
}

async function makeParts(env: Environment): Promise<Parts> {
  const settings = readSettings(env)
  if (settings.databaseUrl === null) throw new MillraceError('INVALID_SETTING', 'DATABASE_URL is not set')
  const { encryptionKey, previousEncryptionKeys } = settings
  const sealer =
    encryptionKey === null
      ? null
      : await createSealer({ current: encryptionKey, previous: previousEncryptionKeys })
  const db = createNeonHttpDb({ url: settings.databaseUrl, schema: settings.schema, gateway: gatewayOf(env) })
  return { settings, db, sealer }
}

/** MILLRACE_NEON_GATEWAY, `host:port`: a local gateway in place of Neon, to run the edge app without one. */
function gatewayOf(env: Environment): GatewayAddress | undefined {
  const value = env.MILLRACE_NEON_GATEWAY
  if (typeof value !== 'string' || value === '') return undefined
  const [host = '', port = ''] = value.split(':')
  return { host, port: Number(port) }
}
