import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { startDelivery } from '../../src/node/start-delivery.ts'
import { readSettings } from '../../src/settings.ts'
import { tickSchedules } from '../../src/schedules/tick-schedules.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { startReceiver } from '../support/receiver.ts'
import { hasPgBouncer, startPgBouncer, type PgBouncer } from '../support/pgbouncer.ts'

if (!hasPgBouncer)
  process.stderr.write('not run: poolers, for want of a PgBouncer (apt-get install pgbouncer)\n')

const patience = { timeout: 20_000, interval: 20 }

describe.skipIf(!hasPgBouncer)('through a PgBouncer in transaction mode', () => {
  let bouncer: PgBouncer
  let database: TestDatabase
  let gateway: NeonGateway
  let url: string
  beforeAll(async () => {
    bouncer = await startPgBouncer(inject('adminUrl'))
    database = await createMigratedDatabase()
    url = bouncer.through(database.url)
    gateway = await startGateway(url)
  })
  afterAll(async () => {
    await gateway?.close()
    await bouncer?.close()
    await database?.drop()
  })

  // not neon-http: there it is the gateway that has the sessions, and it resets them, as Neon's proxy does
  const drivers: [string, () => Db][] = [
    ['node-postgres', () => createNodePostgresDb({ url })],
    ['neon-ws', () => createNodeNeonWsDb({ url, gateway })],
  ]

  describe.each(drivers)('%s', (name, open) => {
    let millrace: Millrace
    beforeAll(() => {
      millrace = createMillrace({ db: open(), pollMinMs: 50, pollMaxMs: 200 })
    })
    afterAll(() => millrace.close())

    it('S1: publishes and reads with 20 clients at once, and nothing is skipped', async () => {
      const stream = millrace.stream(`crowd-${name}`)
      const published = await Promise.all(
        Array.from({ length: 100 }, (_, n) => stream.publish({ type: 'made', data: n })),
      )
      const { events, held } = await stream.read({ limit: 200 })
      expect(events.map(({ offset }) => offset)).toEqual(published.toSorted((a, b) => a - b))
      expect(held).toBe(false)
    })

    it('publishes once for an idempotency key, whichever session it meets', async () => {
      const stream = millrace.stream(`once-${name}`)
      const offsets = await Promise.all(
        Array.from({ length: 20 }, () => stream.publish({ type: 'made', data: 1 }, { idempotencyKey: 'k' })),
      )
      expect(new Set(offsets).size).toBe(1)
    })

    it('N4: subscribes by polling, and saves how far it came', async () => {
      const stream = millrace.stream(`followed-${name}`)
      await stream.publish({ type: 'made', data: 1 })
      const consumer = stream.consumer('c')
      const seen: unknown[] = []
      const subscription = consumer.subscribe()
      const reading = (async () => {
        for await (const { data } of subscription) {
          seen.push(data)
          if (seen.length === 2) break
        }
      })()
      await expect.poll(() => seen, patience).toEqual([1])
      const offset = await stream.publish({ type: 'made', data: 2 })
      await reading
      expect(seen).toEqual([1, 2])
      expect(await consumer.save(offset)).toBe(offset)
      await millrace.forwarder.waitFor('polling', { signal: AbortSignal.timeout(30_000) })
    })

    it('Q1: claims, extends and settles, each message once, in 10 workers at once', async () => {
      const queue = millrace.queue<number>(`jobs-${name}`)
      await queue.sendMany(Array.from({ length: 60 }, (_, n) => ({ data: n })))
      const worked: number[] = []
      const work = async (): Promise<void> => {
        for (;;) {
          const { messages } = await queue.claim({ limit: 5 })
          if (messages.length === 0) return
          expect(await queue.extend(messages)).not.toContain(false)
          expect(await queue.ack(messages)).not.toContain(false)
          worked.push(...messages.map(({ data }) => data))
        }
      }
      await Promise.all(Array.from({ length: 10 }, work))
      expect(worked.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n))
    })

    it('Q4: has one holder of a lock at a time, with ascending fences', async () => {
      const lock = millrace.lock(`one-${name}`)
      const taken = await Promise.all(Array.from({ length: 10 }, () => lock.tryAcquire({ ttlMs: 30_000 })))
      const holders = taken.filter((held) => held !== null)
      expect(holders).toHaveLength(1)
      const [first] = holders
      expect(await lock.renew(first!, { ttlMs: 30_000 })).toBeInstanceOf(Date)
      expect(await lock.release(first!)).toBe(true)
      const next = await lock.tryAcquire({ ttlMs: 30_000 })
      expect(next!.fence).toBeGreaterThan(first!.fence)
    })

    it('Q5: fires a schedule once a boundary', async () => {
      const target = { kind: 'queue', name: `ticks-${name}` } as const
      await millrace.schedules.put(`tick-${name}`, { target, everyMs: 200, catchUp: 'all', data: 1 })
      const due: string[] = []
      await expect
        .poll(async () => {
          await Promise.all([1, 2].map(() => tickSchedules(millrace.db, createSystemPorts())))
          const { messages } = await millrace.queue(target.name).claim({ limit: 100 })
          due.push(...messages.map(({ headers }) => headers!['millrace-due-at']!))
          return due.length
        }, patience)
        .toBeGreaterThanOrEqual(3)
      await millrace.schedules.delete(`tick-${name}`)
      expect(new Set(due).size).toBe(due.length)
    })

    it('S1 Q3: keeps what is published and sent in a transaction together, or neither', async ({ skip }) => {
      skip(!millrace.db.capabilities.interactiveTx, 'no interactive transactions')
      const [stream, queue] = [millrace.stream(`together-${name}`), millrace.queue(`together-${name}`)]
      const both = (fail: boolean): Promise<void> =>
        millrace.transaction(async ({ drizzle: tx }) => {
          await stream.publish({ type: 'made', data: 1 }, { tx })
          await queue.send({ data: 1 }, { tx })
          if (fail) throw new Error('rolled back')
        })
      await expect(both(true)).rejects.toThrow('rolled back')
      await both(false)
      expect((await stream.read()).events).toHaveLength(1)
      expect(await queue.stats()).toMatchObject({ ready: 1 })
    })

    it('W1 W3: delivers webhooks in order', async () => {
      const receiver = await startReceiver()
      const input = {
        stream: `hooked-${name}`,
        url: `${receiver.url}/`,
        from: 'start',
        ordering: 'stream',
      } as const
      await createWebhook(millrace.db, input, { sealer: null, policy: { allowInsecure: true } })
      const events = Array.from({ length: 50 }, (_, n) => ({ type: 'made', data: n }))
      await millrace.stream(input.stream).publishMany(events)
      const settings = readSettings({ MILLRACE_ALLOW_INSECURE_TARGETS: '1', MILLRACE_LISTEN: '0' })
      const delivery = startDelivery({ db: millrace.db, settings, sealer: null, ports: createSystemPorts() })
      try {
        await receiver.waitFor(50, 30_000)
        const order = receiver.requests.map(({ body }) => (JSON.parse(String(body)) as { data: number }).data)
        expect(order).toEqual(events.map(({ data }) => data))
      } finally {
        await delivery.stop({ withinMs: 1_000 })
        await receiver.close()
      }
    })
  })

  it('the self-test notices, and says `polling` and why', async () => {
    const db = createNodePostgresDb({ url })
    const millrace = createMillrace({ db })
    millrace.forwarder.start()
    await millrace.forwarder.waitFor('polling', { signal: AbortSignal.timeout(30_000) })
    expect(millrace.forwarder.lastError).toMatchObject({
      code: 'LISTEN_UNSUPPORTED',
      message: expect.stringContaining('transaction-mode pooler') as string,
    })
    await millrace.close()
  })

  it('listens beside it, with the direct address', async () => {
    const db = createNodePostgresDb({ url, directUrl: database.url })
    const millrace = createMillrace({ db })
    millrace.forwarder.start()
    await millrace.forwarder.waitFor('listening', { signal: AbortSignal.timeout(30_000) })
    const wake = millrace.forwarder.subscribeWakes('all')
    wake.take()
    await millrace.stream('woken').publish({ type: 'made', data: 1 })
    expect(await wake.wait({ signal: AbortSignal.timeout(20_000) })).toBe('wake')
    await millrace.close()
  })

  it('makes the tables over the direct address beside it', async () => {
    const empty = await createTestDatabase()
    const db = createNodePostgresDb({ url: bouncer.through(empty.url), directUrl: empty.url })
    const { applied } = await migrate(db, { files: await readMigrationFiles() })
    expect(applied.length).toBeGreaterThan(0)
    expect(await createMillrace({ db }).stream('s').publish({ type: 'made', data: 1 })).toBeGreaterThan(0)
    await db.close()
    await empty.drop()
  })

  it('leaves nothing behind in the sessions: no lock, no prepared statement, no setting', async () => {
    const db = createNodePostgresDb({ url })
    const stream = createMillrace({ db }).stream('clean')
    for (let n = 0; n < 10; n++) {
      await stream.publish({ type: 'made', data: n })
      await stream.read()
    }
    await db.close()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      const { rows } = await client.query(`select
        (select count(*)::integer from pg_catalog.pg_locks where locktype = 'advisory' and database =
          (select oid from pg_catalog.pg_database where datname = current_database())) as locks,
        (select count(*)::integer from pg_catalog.pg_prepared_statements where name <> '') as prepared,
        (select count(*)::integer from pg_catalog.pg_settings where source = 'session'
          and name not in ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',
            'standard_conforming_strings')) as settings`)
      expect(rows).toEqual([{ locks: 0, prepared: 0, settings: 0 }])
    } finally {
      await client.end()
    }
  })
})
