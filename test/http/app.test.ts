import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { createApp } from '../../src/http/app.ts'
import type { AppOptions } from '../../src/http/context.ts'
import type { Log } from '../../src/ports.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { expectJson, expectProblem } from './suite/answers.ts'
import { createApi, freshName, type Api } from './suite/target.ts'

const rootKey = 'a-root-key-for-these-tests'
let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})

interface Line {
  level: string
  facts: object
  message: string
}

/** An app with a log that can be read, and the options that a test is about. */
function appWith(options: Partial<AppOptions>): { api: Api; lines: Line[] } {
  const lines: Line[] = []
  const write = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, facts, message })
  const log: Log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const app = createApp({
    db,
    rootKey,
    ports: createSystemPorts(log),
    targetPolicy: {},
    sealer: null,
    ...options,
  })
  const target = { fetch: async (request: Request) => app.fetch(request), db, rootKey, close: async () => {} }
  return { api: createApi(() => target), lines }
}

/** A database that was closed: whoever asks it fails. */
async function closedDb(): Promise<Db> {
  const closed = createNodePostgresDb({ url: database.url })
  await closed.close()
  return closed
}

/** A port where nothing listens. */
const unreachable = () => createNodePostgresDb({ url: 'postgres://someone:a-password@127.0.0.1:1/nowhere' })

const event = { type: 'a', data: 1 }

describe('the hooks of the app', () => {
  it('hear of a publish once, by the number and name of the stream', async () => {
    const heard: object[] = []
    const { api } = appWith({ afterPublish: (info) => void heard.push(info) })
    const stream = freshName()
    const key = { 'idempotency-key': 'k' }
    await api.call('POST', `/v1/streams/${stream}/events`, event, key)
    await api.call('POST', `/v1/streams/${stream}/events`, event, key)
    await api.call('POST', `/v1/streams/${stream}/events`, { type: 'a' })
    const [row] = await runQuery<{ id: number }>(
      db,
      sql`select s.id from ${db.tables.streams} s where s.name = ${stream}`,
    )
    expect(heard).toEqual([{ streamId: row?.id, stream, request: expect.any(Request) }])
  })

  it('hear of every change of a webhook', async () => {
    const heard: object[] = []
    const { api } = appWith({ onWebhookChange: (info) => void heard.push(info) })
    const input = { stream: freshName(), url: 'https://example.com/' }
    const { id } = await expectJson<{ id: string }>(await api.call('POST', '/v1/webhooks', input), 201)
    await api.call('PATCH', `/v1/webhooks/${id}`, { timeoutMs: 2000 })
    await api.call('PATCH', `/v1/webhooks/${id}`, { timeoutMs: 1 })
    await api.call('DELETE', `/v1/webhooks/${id}`)
    await api.call('DELETE', `/v1/webhooks/${id}`)
    expect(heard).toEqual([
      { id, change: 'created' },
      { id, change: 'updated' },
      { id, change: 'deleted' },
    ])
  })

  it('do not fail the publish that is already stored when they throw', async () => {
    const afterPublish = () => {
      throw new Error('the queue is down')
    }
    const { api, lines } = appWith({ afterPublish })
    await expectJson(await api.call('POST', `/v1/streams/${freshName()}/events`, event), 201)
    expect(lines).toMatchObject([{ level: 'error', facts: { error: 'the queue is down' } }])
  })
})

describe('without the database', () => {
  it('S5: a read at limit 0 is answered all the same, since it never gets there', async () => {
    const { api } = appWith({ db: await closedDb() })
    const path = `/v1/streams/${freshName()}/events`
    expect(await expectJson(await api.call('GET', `${path}?limit=0&after=3`), 200)).toMatchObject({ next: 3 })
    expect(await expectJson(await api.call('GET', `${path}?limit=-5`), 200)).toMatchObject({ events: [] })
    await expectProblem(await api.call('GET', `${path}?limit=1`), 'STORE_CLOSED')
  })

  it('a request is told when to come back, and nothing of where the database is', async () => {
    const { api, lines } = appWith({ db: unreachable() })
    const answer = await api.call('GET', `/v1/streams/${freshName()}/events?after=7`)
    expect(answer.headers.get('retry-after')).toBe('1')
    const problem = await expectProblem(answer, 'DATABASE_UNAVAILABLE')
    expect(JSON.stringify(problem)).not.toMatch(/127\.0\.0\.1|ECONNREFUSED|someone/)
    expect(lines).toMatchObject([{ level: 'warn', facts: { code: 'DATABASE_UNAVAILABLE', method: 'GET' } }])
    expect(JSON.stringify(lines)).toContain('ECONNREFUSED')
    for (const secret of [rootKey, 'a-password', 'after=7'])
      expect(JSON.stringify(lines)).not.toContain(secret)
  })

  it('/healthz answers and /readyz does not', async () => {
    const { api } = appWith({ db: unreachable() })
    await expectJson(await api.raw('/healthz'), 200)
    const report = { ready: false, database: 'DATABASE_UNAVAILABLE', migrations: 'unknown' }
    expect(await expectJson(await api.raw('/readyz'), 503)).toEqual(report)
  })
})

describe('/readyz', () => {
  it('says that the tables are missing', async () => {
    const empty = await createTestDatabase()
    const bare = createNodePostgresDb({ url: empty.url })
    const { api } = appWith({ db: bare })
    const report = { ready: false, database: 'ok', migrations: 'pending' }
    expect(await expectJson(await api.raw('/readyz'), 503)).toEqual(report)
    await expectProblem(await api.call('GET', '/v1/webhooks'), 'NOT_MIGRATED')
    await bare.close()
    await empty.drop()
  })

  it('reports what the host knows, and gives up on one that does not answer', async () => {
    const ready = async () => ({ ready: true, database: 'ok', migrations: 'ok', mode: 'listening' }) as const
    expect(await expectJson(await appWith({ ready }).api.raw('/readyz'), 200)).toMatchObject({
      mode: 'listening',
    })

    const timers: { fn: () => void; ms: number }[] = []
    const clock = {
      now: () => 0,
      setTimeout: (fn: () => void, ms: number) => timers.push({ fn, ms }),
      clearTimeout() {},
    }
    const ports = { ...createSystemPorts(), clock }
    const asked = appWith({ ready: () => new Promise(() => {}), ports }).api.raw('/readyz')
    await expect.poll(() => timers).toHaveLength(1)
    expect(timers[0]?.ms).toBe(5000)
    timers[0]?.fn()
    expect(await expectJson(await asked, 503)).toMatchObject({
      ready: false,
      database: 'DATABASE_UNAVAILABLE',
    })
  })
})

describe('an error that nobody foresaw', () => {
  it('is INTERNAL to the caller, and whole in the log', async () => {
    const broken = {
      ...db,
      get drizzle(): never {
        throw new TypeError('secret words')
      },
    }
    const { api, lines } = appWith({ db: broken })
    const problem = await expectProblem(await api.call('GET', '/v1/webhooks'), 'INTERNAL')
    expect(JSON.stringify(problem)).not.toContain('secret words')
    expect(lines).toMatchObject([
      {
        level: 'error',
        facts: { path: '/v1/webhooks', cause: { name: 'TypeError', message: 'secret words' } },
      },
    ])
  })
})

describe('the settings of the app', () => {
  it.each(['', '  '])('refuse the root key "%s", which would let everyone in', (key) => {
    expect(() => appWith({ rootKey: key })).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }))
  })

  it.each([0, -1, 1.5, Number.NaN])('refuse the body limit %s', (maxBodyBytes) => {
    expect(() => appWith({ maxBodyBytes })).toThrow(expect.objectContaining({ code: 'INVALID_SETTING' }))
  })

  it('take another body limit', async () => {
    const { api } = appWith({ maxBodyBytes: 10 })
    const path = `/v1/streams/${freshName()}/events`
    await expectJson(await api.call('POST', path, '{"type":"a","data":"12345678"}'), 201)
    await expectProblem(
      await api.call('POST', path, '{"type":"a","data":"123456789"}'),
      'BODY_TOO_LARGE',
      'data',
    )
  })

  it('store secrets in the clear only where no sealer is given', async () => {
    const { api } = appWith({ sealer: null })
    const input = { stream: freshName(), url: 'https://example.com/' }
    const answer = await api.call('POST', '/v1/webhooks', input)
    const { id, secret } = await expectJson<{ id: string; secret: string }>(answer, 201)
    const rows = await runQuery(
      db,
      sql`select sealed from ${db.tables.webhookSecrets} k where k.webhook_id = ${id}`,
    )
    expect(rows).toEqual([{ sealed: secret }])
  })
})
