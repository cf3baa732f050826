import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import { migrate } from '../../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../../src/db/migrate/node-files.ts'
import type { Db } from '../../../src/db/port.ts'
import { tryAcquireLock } from '../../../src/locks/try-acquire.ts'
import { claimMessages } from '../../../src/queues/claim-messages.ts'
import type { ClaimedMessage } from '../../../src/queues/message.ts'
import { sendMessages } from '../../../src/queues/send-messages.ts'
import { putSchedule } from '../../../src/schedules/put-schedule.ts'
import { configureStream } from '../../../src/streams/configure-stream.ts'
import { publishEvents } from '../../../src/streams/publish-events.ts'
import { createSystemPorts } from '../../../src/system-ports.ts'
import { createWebhook } from '../../../src/webhooks/create-webhook.ts'
import { createDelivery } from '../../../src/webhooks/deliver-event.ts'
import { claimWebhooks } from '../../../src/webhooks/engine/claim-webhooks.ts'
import { drain, type DrainReport } from '../../../src/webhooks/engine/drain.ts'
import { createNodeSender } from '../../../src/webhooks/node-sender.ts'
import { createNodeSigner } from '../../../src/webhooks/node-sign.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import type { Receiver } from '../../support/receiver.ts'

export const production = 'production'
const policy = { allowInsecure: true }

/** One bounded drain, as of a process that was started for the environment of `db`. */
export async function drainOnce(db: Db): Promise<DrainReport> {
  const ports = createSystemPorts()
  const sender = createNodeSender({ policy })
  const delivery = createDelivery({ sender, createSigner: createNodeSigner, sealer: null, ports })
  try {
    return await drain({ db, ports, delivery, environment: db.environment, budgetMs: 20_000 })
  } finally {
    await sender.close()
  }
}

/** What the original had at hand when it was copied. */
export interface Original {
  database: TestDatabase
  retrying: { id: string }
  leased: ClaimedMessage
}

/**
 * A database of production in the midst of its work: a retry that is due, a webhook under lease, a schedule
 * that is due, a leased message whose key holds another one back, one whose last lease is over, a held lock,
 * and events that are older than their stream keeps.
 *
 * @param receiver where both webhooks point; it has answered one attempt with 503
 */
export async function createOriginal(receiver: Receiver): Promise<Original> {
  const database = await createTestDatabase()
  const db = openFor(database, production)
  await migrate(db, { files: await readMigrationFiles(), environment: production })
  const hook = (stream: string) =>
    createWebhook(
      db,
      { stream, url: `${receiver.url}/${stream}`, scheduleMs: [0, 1_000], jitterPercent: 0, maxAttempts: 2 },
      { sealer: null, policy },
    )
  const retrying = await hook('retrying')
  await publishEvents(db, 'retrying', [{ type: 'made', dataText: '1' }])
  receiver.answerNext({ status: 503 })
  await drainOnce(db)
  await hook('leased')
  const { streamId } = await publishEvents(db, 'leased', [{ type: 'made', dataText: '2' }])
  const request = { token: crypto.randomUUID(), leaseMs: 600_000, limit: 1, environment: production }
  await claimWebhooks(db, { ...request, scope: { kind: 'streams', streamIds: [streamId] } })
  await putSchedule(db, 'soon', { target: { kind: 'queue', name: 'fired' }, everyMs: 100, dataText: '3' })
  await sendMessages(
    db,
    'jobs',
    ['first', 'second'].map((data) => ({ dataText: `"${data}"`, key: 'k' })),
  )
  const { messages } = await claimMessages(db, 'jobs', { leaseMs: 600_000 })
  await sendMessages(db, 'overdue', [{ dataText: '4', maxAttempts: 1 }])
  await claimMessages(db, 'overdue', { leaseMs: 1 })
  await tryAcquireLock(db, 'held', { ttlMs: 600_000 })
  await configureStream(db, 'old', { count: 1 })
  await publishEvents(
    db,
    'old',
    [1, 2, 3].map((n) => ({ type: 'made', dataText: String(n) })),
  )
  await db.close()
  return { database, retrying, leased: messages[0]! }
}

export function openFor({ url }: Pick<TestDatabase, 'url'>, environment: string | null): Db {
  return createNodePostgresDb({ url, environment })
}
