import { sql } from 'drizzle-orm'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { missingGrants } from '../../src/db/grants/check-grants.ts'
import { grantStatements } from '../../src/db/grants/grant-statements.ts'
import { assertMigrated } from '../../src/db/migrate/check-migrations.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import { qualified, runQuery } from '../../src/db/run.ts'
import { createApp } from '../../src/http/app.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { startDelivery } from '../../src/node/start-delivery.ts'
import { purgeLocks } from '../../src/locks/purge-locks.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { tickSchedules } from '../../src/schedules/tick-schedules.ts'
import { readSettings } from '../../src/settings.ts'
import { listHorizonHolders } from '../../src/streams/horizon-holders.ts'
import { runRetention } from '../../src/streams/retention.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { removeOldAttempts } from '../../src/webhooks/attempt-retention.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { getWebhook } from '../../src/webhooks/get-webhook.ts'
import { createSealer } from '../../src/webhooks/seal.ts'
import { httpSuite } from '../http/suite/http-suite.ts'
import { startReceiver } from '../support/receiver.ts'
import { createRuntimeRole, type RuntimeRole } from '../support/runtime-role.ts'

const rootKey = 'Root-key-0123456789'
const within = { timeout: 20_000, interval: 20 }

httpSuite('the HTTP API as a role with the printed grants', async () => {
  const role = await createRuntimeRole()
  const asRole = createNodePostgresDb({ url: role.url })
  const db = createNodePostgresDb({ url: role.ownerUrl })
  const sealer = await createSealer({ current: 'a passphrase that is long enough' })
  const app = createApp({
    db: asRole,
    rootKey,
    ports: createSystemPorts(),
    targetPolicy: {},
    sealer,
    workRoutes,
  })
  return {
    fetch: async (request) => app.fetch(request),
    db,
    rootKey,
    async close() {
      await asRole.close()
      await db.close()
      await role.drop()
    },
  }
})

describe('a role with the printed grants', () => {
  let role: RuntimeRole
  let store: Millrace
  let db: Db
  const ports = createSystemPorts()

  beforeAll(async () => {
    role = await createRuntimeRole()
    db = createNodePostgresDb({ url: role.url })
    store = createMillrace({ db })
  })
  afterAll(async () => {
    await store.close()
    await role.drop()
  })

  it('lacks nothing, and sees that the database is at this version', async () => {
    expect(await missingGrants(db)).toEqual([])
    await expect(assertMigrated(db, await readMigrationFiles())).resolves.toBeUndefined()
  })

  it('delivers: what succeeds, what is tried again, and what dies', async () => {
    const receiver = await startReceiver()
    const settings = readSettings({ MILLRACE_ALLOW_INSECURE_TARGETS: '1' })
    const delivery = startDelivery({ db, settings, sealer: null, ports })
    receiver.answer((request) => ({ status: String(request.body).includes('fails') ? 500 : 200 }))
    receiver.answerNext({ status: 503 })
    const { id } = await createWebhook(
      db,
      {
        stream: 'orders',
        url: receiver.url,
        from: 'start',
        maxAttempts: 2,
        scheduleMs: [0, 0],
        jitterPercent: 0,
      },
      { sealer: null, policy: { allowInsecure: true } },
    )
    await store.stream('orders').publish({ type: 'a', data: 'retried' })
    await receiver.waitFor(2, 20_000)
    await store.stream('orders').publish({ type: 'a', data: 'fails', key: 'k' })
    await store.stream('orders').publish({ type: 'a', data: 'waits', key: 'k' })
    await receiver.waitFor(5, 20_000)
    await vi.waitFor(async () => {
      expect(await getWebhook(db, id)).toMatchObject({ dead: 1, retrying: 0, blocked: 0, lag: 0 })
    }, within)
    expect(await delivery.metrics.text()).toContain('millrace_webhooks')
    await delivery.stop({ withinMs: 2000 })
    await removeOldAttempts(db, { maxPerWebhook: 1 })
    await receiver.close()
  })

  it('is woken, follows, works a queue, and does all that recurs', async () => {
    const stream = store.stream('s')
    const got: unknown[] = []
    const subscription = stream.consumer('c').subscribe()
    const following = (async () => {
      for await (const event of subscription) {
        got.push(event.data)
        await subscription.save()
      }
    })()
    await store.transaction(async ({ drizzle: tx }) => {
      await stream.publish({ type: 'a', data: 1 }, { tx, idempotencyKey: 'one' })
      await store.notify('news', 'x', { tx })
      await store.queue('jobs').send({ data: 2 }, { tx })
    })
    const worker = store.queue('jobs').work((message) => void got.push(message.data))
    await vi.waitFor(() => expect(got).toHaveLength(2), within)
    await worker.stop()
    await store.schedules.put('each', { target: { kind: 'queue', name: 'jobs' }, everyMs: 100, data: 3 })
    await vi.waitFor(async () => {
      await tickSchedules(db, ports)
      expect((await store.queue('jobs').stats())?.ready).toBeGreaterThan(0)
    }, within)
    await stream.configure({ count: 0, ageMs: 1000 })
    await runRetention(db, { clock: ports.clock })
    await sweepQueues(db)
    await purgeLocks(db)
    expect(await listHorizonHolders(db)).toEqual([])
    await subscription.return?.()
    await following
  })

  it.each([
    ['make a table', 'create table millrace.mine (id int)'],
    ['make a function', "create function millrace.mine() returns int language sql as 'select 1'"],
    ['change a table', 'alter table millrace.events add column mine text'],
    ['drop a table', 'drop table millrace.offsets'],
    ['drop the schema', 'drop schema millrace cascade'],
    ['empty a table', 'truncate millrace.events'],
    ['add an index', 'create index mine on millrace.events (type)'],
    [
      'put an event in around append',
      `insert into millrace.events (stream_id, "offset", type, data) values (1, 1, 'a', '1')`,
    ],
    ['change an event', `update millrace.events set data = '0'`],
    ['lock events', 'select 1 from millrace.events for update'],
    ['delete an event around trim', 'delete from millrace.events'],
    ['draw an offset', `select nextval('millrace.event_offset')`],
    ['move the offsets', `select setval('millrace.event_offset', 1)`],
    ['move the fences', `select setval('millrace.lock_fence', 1)`],
    ['delete a stream', 'delete from millrace.streams'],
    ['take over another environment (W7)', `update millrace.installation set environment = 'mine'`],
    ['change what was migrated', 'delete from millrace.migrations'],
    ['widen a key', `update millrace.api_keys set scopes = '{manage}'`],
  ])('cannot %s', async (_, statement) => {
    const client = new pg.Client({ connectionString: role.url })
    await client.connect()
    try {
      await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' })
    } finally {
      await client.end()
    }
  })
})

describe('a role with less', () => {
  it('is told by name what it lacks, before and while it works', async () => {
    const role = await createRuntimeRole((name) =>
      grantStatements(name).filter((statement) => !/"offsets"|"lock_fence"|ROUTINES/.test(statement)),
    )
    const store = createMillrace({ db: createNodePostgresDb({ url: role.url }) })
    try {
      expect(await missingGrants(store.db)).toEqual([
        'EXECUTE on routine append',
        'EXECUTE on routine trim_events',
        'INSERT on table offsets',
        'SELECT on table offsets',
        'UPDATE on table offsets',
        'USAGE on sequence lock_fence',
      ])
      await expect(store.stream('s').publish({ type: 'a', data: 1 })).rejects.toMatchObject({
        code: 'PERMISSION_DENIED',
        message: expect.stringContaining('append') as string,
      })
      await expect(store.stream('s').consumer('c').offset()).rejects.toMatchObject({
        code: 'PERMISSION_DENIED',
        message: expect.stringContaining('offsets') as string,
      })
      expect(await missingGrants(store.db, 'pg_read_all_data')).toContain('INSERT on table offsets')
    } finally {
      await store.close()
      await role.drop()
    }
  })

  it('is told what is not there at all', async () => {
    const role = await createRuntimeRole()
    const owner = createNodePostgresDb({ url: role.ownerUrl })
    const store = createMillrace({ db: createNodePostgresDb({ url: role.url }) })
    try {
      await runQuery(owner, sql`drop table ${owner.tables.offsets}`)
      await runQuery(owner, sql`drop function ${qualified(owner, 'claim_messages')}`)
      const files = await readMigrationFiles()
      await expect(assertMigrated(store.db, files)).rejects.toMatchObject({
        code: 'NOT_MIGRATED',
        message: expect.stringContaining('lacks the table offsets, the function claim_messages') as string,
        details: { lacking: ['table offsets', 'function claim_messages'] },
      })
      await expect(store.stream('s').consumer('c').offset()).rejects.toMatchObject({
        code: 'NOT_MIGRATED',
        message: expect.stringMatching(/^a table is missing: .*millrace\.offsets/) as string,
      })
      await expect(store.queue('q').claim()).rejects.toMatchObject({
        code: 'NOT_MIGRATED',
        message: expect.stringMatching(/^a function is missing: .*millrace\.claim_messages/) as string,
      })
    } finally {
      await store.close()
      await owner.close()
      await role.drop()
    }
  })
})

describe('the names of roles', () => {
  it('are quoted, and refused where Postgres would cut them off', () => {
    expect(grantStatements('o"app', 'mine')[0]).toBe('GRANT USAGE ON SCHEMA "mine" TO "o""app"')
    for (const name of ['', 'a\0', 'ä'.repeat(32)])
      expect(() => grantStatements(name)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
