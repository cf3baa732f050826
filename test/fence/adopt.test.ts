import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { adoptEnvironment } from '../../src/db/adopt-environment.ts'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { createApp } from '../../src/http/app.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { purgeLocks } from '../../src/locks/purge-locks.ts'
import { readLock } from '../../src/locks/read-lock.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { startForwarder } from '../../src/node/run-forwarder.ts'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { nextSweepInMs } from '../../src/queues/next-sweep.ts'
import { ackMessages } from '../../src/queues/settle-messages.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { tickSchedules } from '../../src/schedules/tick-schedules.ts'
import { readSettings } from '../../src/settings.ts'
import { runRetention } from '../../src/streams/retention.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { removeOldAttempts } from '../../src/webhooks/attempt-retention.ts'
import { listWebhooks } from '../../src/webhooks/list-webhooks.ts'
import { resumeWebhook } from '../../src/webhooks/operations/set-state.ts'
import type { TestDatabase } from '../support/database.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { waysToCopy } from './support/copies.ts'
import { createOriginal, drainOnce, openFor, production, type Original } from './support/original.ts'

const preview = 'preview-12'
const rootKey = 'Root-key-0123456789'
const ports = createSystemPorts()
const within = { timeout: 20_000, interval: 50 }

let receiver: Receiver
let original: Original
beforeAll(async () => {
  receiver = await startReceiver()
  original = await createOriginal(receiver)
}, 60_000)
afterAll(async () => {
  await original.database.drop()
  await receiver.close()
})

/** Everything that work changes, as text. */
async function contentOf(db: Db): Promise<unknown> {
  const { webhooks, deliveries, messages, locks, schedules, attempts, events, deadLetters } = db.tables
  const contents = []
  for (const table of [webhooks, deliveries, messages, deadLetters, locks, schedules, attempts, events])
    contents.push(await runQuery(db, sql`select t::text as row from ${table} t order by 1`))
  return contents
}

async function until(db: Db, condition: ReturnType<typeof sql>): Promise<void> {
  await vi.waitFor(async () => {
    const [row] = await runQuery<{ met: boolean }>(db, sql`select (${condition}) as met`)
    expect(row?.met).toBe(true)
  }, within)
}

/** What was copied has fallen due, also by the clock of a busy machine. */
const allIsDue = (db: Db) => {
  const { webhooks, schedules, messages } = db.tables
  return until(
    db,
    sql`exists (select from ${webhooks} w where w.due_at <= now())
      and exists (select from ${schedules} s where s.next_at <= now())
      and exists (select from ${messages} m where m.state = 'leased' and m.due_at <= now())`,
  )
}

const foreign = expect.objectContaining({ code: 'WRONG_ENVIRONMENT' })

describe.each(await waysToCopy())('%s, and a worker with its own environment', (_way, copy) => {
  let database: TestDatabase
  let db: Db
  let millrace: Millrace
  const worked: unknown[] = []
  const told: string[] = []
  const noted: string[] = []
  beforeAll(async () => {
    database = await copy(original.database.url)
    db = openFor(database, preview)
    const error = (_facts: object, message: string) => void told.push(message)
    const info = (_facts: object, message: string) => void noted.push(message)
    const log = { ...ports.log, error, info }
    millrace = createMillrace({ db, ports: { ...ports, log } })
    millrace.queue('jobs').work(async ({ data }) => void worked.push(data))
    await allIsDue(db)
  }, 60_000)
  afterAll(async () => {
    await millrace.close()
    await database.drop()
  })

  it('W7: delivers, fires, claims, sweeps and removes nothing before it is adopted', async () => {
    const [before, sent] = [await contentOf(db), receiver.requests.length]
    const report = await drainOnce(db)
    expect(report).toMatchObject({ webhooks: 0, foreignEnvironment: { environment: production } })
    expect(await tickSchedules(db, ports)).toMatchObject({ role: 'foreign', fired: 0, nextDueInMs: null })
    await expect(claimMessages(db, 'overdue')).rejects.toEqual(foreign)
    await expect(claimMessages(db, 'no-such-queue')).rejects.toEqual(foreign)
    expect(await sweepQueues(db)).toEqual({ released: 0, died: 0, removed: 0, forgotten: 0, more: false })
    expect(await nextSweepInMs(db)).toBeNull()
    expect(await runRetention(db, ports)).toEqual({ deleted: 0, nextDueInMs: null })
    expect(await removeOldAttempts(db, { maxPerWebhook: 1 })).toBe(0)
    expect(await purgeLocks(db)).toBe(0)
    expect(await contentOf(db)).toEqual(before)
    expect(receiver.requests).toHaveLength(sent)
  })

  it('W7: tells a worker of a queue once, and a forwarder at its start', async () => {
    await vi.waitFor(() => expect(told).toHaveLength(1), within)
    expect(told[0]).toContain('another environment')
    expect(worked).toEqual([])
    const env = { DATABASE_URL: database.url, MILLRACE_ENVIRONMENT: preview }
    await expect(startForwarder(readSettings(env), ports)).rejects.toMatchObject({
      code: 'WRONG_ENVIRONMENT',
      details: { database: production, process: preview },
    })
  })

  it('W7: publishes and reads over HTTP, and says why it claims, tests and is ready for nothing', async () => {
    const policy = { allowInsecure: true }
    const delivery = (): never => expect.unreachable('a test event was about to be sent')
    const app = createApp({ db, rootKey, ports, targetPolicy: policy, sealer: null, workRoutes, delivery })
    const call = async (method: string, path: string, body?: unknown) => {
      const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }
      const response = await app.request(path, { method, headers, body: JSON.stringify(body) })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    expect(await call('POST', '/v1/streams/fresh/events', { type: 'made', data: 1 })).toMatchObject({
      status: 201,
    })
    expect((await call('GET', '/v1/streams/fresh/events')).body.events).toHaveLength(1)
    expect(await call('POST', '/v1/queues/fresh/messages', { data: 1 })).toMatchObject({ status: 201 })
    const refused = { status: 409, body: { code: 'WRONG_ENVIRONMENT' } }
    expect(await call('POST', '/v1/queues/fresh/claim', {})).toMatchObject(refused)
    expect(await call('POST', `/v1/webhooks/${original.retrying.id}/test`)).toMatchObject(refused)
    const notReady = { ready: false, database: 'ok', migrations: 'ok', delivery: 'foreign_environment' }
    expect(await call('GET', '/readyz')).toEqual({ status: 503, body: notReady })
  })

  it('tells what adopting would do, and does nothing, in a dry run', async () => {
    const before = await contentOf(db)
    const told = await adoptEnvironment(db, { environment: preview, dryRun: true })
    expect(told).toMatchObject({ webhooksPaused: 2, leasesDropped: { webhooks: 1, messages: 2, locks: 1 } })
    expect(await contentOf(db)).toEqual(before)
    await expect(claimMessages(db, 'overdue')).rejects.toEqual(foreign)
  })

  it('W7 W5 Q1: belongs to itself once adopted: a new id, no leases, its webhooks paused', async () => {
    const adopted = await adoptEnvironment(db, { environment: preview })
    expect(adopted.before.environment).toBe(production)
    expect(adopted.after.environment).toBe(preview)
    expect(adopted.after.installationId).not.toBe(adopted.before.installationId)
    expect(adopted).toMatchObject({
      webhooksPaused: 2,
      leasesDropped: { webhooks: 1, messages: 2, locks: 1 },
    })
    const { webhooks } = await listWebhooks(db, {})
    expect(webhooks.map(({ state }) => state)).toEqual(['paused', 'paused'])
    expect(await readLock(db, 'held')).toMatchObject({ held: false })
    // whoever held it in the original settles nothing here
    expect(await ackMessages(db, 'jobs', [original.leased])).toEqual([false])
    await expect(adoptEnvironment(db, { environment: preview })).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('Q2: hands what was leased to the worker that waited, in the order of its key, with all its attempts', async () => {
    await vi.waitFor(() => expect(worked).toEqual(['first', 'second']), within)
    expect(noted.filter((line) => line.includes('claiming goes on'))).toHaveLength(1)
    const { messages } = await claimMessages(db, 'overdue')
    expect(messages).toMatchObject([{ attempt: 1, maxAttempts: 1 }])
    expect(await tickSchedules(db, ports)).toMatchObject({ role: 'led', fired: 1 })
    expect((await runRetention(db, ports)).deleted).toBe(2)
  })

  it('W7: sends nothing while paused; then what was due, under another webhook-id than the original', async () => {
    const before = receiver.requests.length
    expect(await drainOnce(db)).toMatchObject({ webhooks: 0, foreignEnvironment: null })
    expect(receiver.requests).toHaveLength(before)
    const { webhooks } = await listWebhooks(db, {})
    for (const { id } of webhooks) await resumeWebhook(db, id)
    await drainOnce(db)
    const sent = receiver.requests.slice(before)
    expect(sent.map(({ path }) => path).sort()).toEqual(['/leased', '/retrying'])
    const here = sent.find(({ path }) => path === '/retrying')?.headers['webhook-id']
    const there = receiver.requests.find(({ path }) => path === '/retrying')?.headers['webhook-id']
    expect(here).not.toBe(there)
  })
})

it('W7: a name and nothing else, for the original that had none', async () => {
  const db = openFor(original.database, 'renamed')
  const lock = await readLock(db, 'held')
  const kept = await adoptEnvironment(db, { environment: 'renamed', keepIdentity: true })
  expect(kept.after).toEqual({ ...kept.before, environment: 'renamed' })
  expect(kept).toMatchObject({ webhooksPaused: 0, leasesDropped: { webhooks: 0, messages: 0, locks: 0 } })
  expect(await readLock(db, 'held')).toEqual(lock)
  expect(await ackMessages(db, 'jobs', [original.leased])).toEqual([true])
  const again = await adoptEnvironment(db, { environment: 'renamed', again: true, keepWebhooks: true })
  expect(again).toMatchObject({ webhooksPaused: 0, leasesDropped: { webhooks: 1, locks: 1 } })
  await db.close()
})
