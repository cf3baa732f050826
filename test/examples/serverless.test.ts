import type { LambdaEvent } from 'hono/aws-lambda'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startGateway } from '../support/gateway.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'

const rootKey = 'Root-key-0123456789'
const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }

let database: TestDatabase
let gateway: NeonGateway
let db: Db
let receiver: Receiver
const crons: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  db = createNodePostgresDb({ url: database.url })
  await migrate(db, { files: await readMigrationFiles() })
  gateway = await startGateway(database.url)
  vi.stubEnv('DATABASE_URL', database.url)
  vi.stubEnv('MILLRACE_NEON_GATEWAY', `${gateway.host}:${gateway.port}`)
  vi.stubEnv('MILLRACE_ROOT_KEY', rootKey)
  vi.stubEnv('MILLRACE_ENCRYPTION_KEY', 'a passphrase that is long enough')
  vi.stubEnv('MILLRACE_ALLOW_INSECURE_TARGETS', '1')
  vi.stubEnv('CRON_SECRET', 'cron-secret')
  vi.stubGlobal('Deno', {
    cron: async (_name: string, _at: string, run: () => Promise<unknown>) => crons.push(run),
  })
})
afterAll(async () => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  await gateway.close()
  await db.close()
  await database.drop()
})
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(() => receiver.close())

/** An example: how to send it a request, and how its platform runs what is due. */
interface Example {
  fetch(request: Request): Promise<Response>
  drain(): Promise<unknown>
}

const left: Promise<unknown>[] = []
const invocation = { waitUntil: (promise: Promise<unknown>) => void left.push(promise) }

const examples: [string, () => Promise<Example>][] = [
  [
    'Vercel',
    async () => {
      const api = await import('../../examples/vercel/api/index.ts')
      const { default: drain } = await import('../../examples/vercel/api/drain.ts')
      const cron = new Request('http://app/api/drain', { headers: { authorization: 'Bearer cron-secret' } })
      return { fetch: (request) => api.default(request, invocation), drain: () => drain(cron) }
    },
  ],
  [
    'Netlify',
    async () => {
      const api = await import('../../examples/netlify/functions/api.ts')
      const { default: drain } = await import('../../examples/netlify/functions/drain.ts')
      return { fetch: (request) => api.default(request, invocation), drain }
    },
  ],
  [
    'Deno',
    async () => {
      const { default: server } = await import('../../examples/deno/main.ts')
      return { fetch: server.fetch, drain: async () => crons[0]?.() }
    },
  ],
  [
    'Lambda',
    async () => {
      const { handler, drain } = await import('../../examples/lambda/handler.ts')
      return { fetch: async (request) => fromLambda(await handler(await toLambda(request))), drain }
    },
  ],
]

async function toLambda(request: Request): Promise<LambdaEvent> {
  const url = new URL(request.url)
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: url.pathname,
    rawQueryString: url.search.slice(1),
    headers: { ...Object.fromEntries(request.headers), host: url.host },
    isBase64Encoded: false,
    body: await request.text(),
    requestContext: { domainName: url.host, http: { method: request.method, path: url.pathname } },
  } as unknown as LambdaEvent
}

function fromLambda({ statusCode, body }: { statusCode: number; body: string }): Response {
  return new Response(body, { status: statusCode })
}

describe.each(examples)('the example for %s', (name, load) => {
  it('serves the API, delivers after a publish, and by its cron', async () => {
    const example = await load()
    const post = async (path: string, body: unknown): Promise<Response> => {
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      return example.fetch(new Request(`http://app${path}`, init))
    }
    const stream = name.toLowerCase()
    expect((await post('/v1/webhooks', { stream, url: `${receiver.url}/` })).status).toBe(201)
    expect((await post(`/v1/streams/${stream}/events`, { type: 'made', data: 1 })).status).toBe(201)
    await receiver.waitFor(1, 20_000)
    await Promise.all(left)
    await publishEvents(db, stream, [{ type: 'made', dataText: '2' }])
    // the drain after the publish may hold the lease a moment longer
    await vi.waitFor(
      async () => {
        await example.drain()
        expect(receiver.requests).toHaveLength(2)
      },
      { timeout: 20_000 },
    )
  }, 90_000)
})

it('the cron of the Vercel example refuses whoever has not its secret', async () => {
  const { default: drain } = await import('../../examples/vercel/api/drain.ts')
  const call = (init?: RequestInit) => drain(new Request('http://app/api/drain', init))
  expect((await call()).status).toBe(401)
  expect((await call({ headers: { authorization: 'Bearer wrong' } })).status).toBe(401)
  vi.stubEnv('CRON_SECRET', '')
  expect((await call({ headers: { authorization: 'Bearer ' } })).status).toBe(401)
  vi.stubEnv('CRON_SECRET', 'cron-secret')
})
