import pg from 'pg'
import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../../src/db/port.ts'
import { startDelivery, type DeliverySetup, type RunningDelivery } from '../../../src/node/start-delivery.ts'
import { readSettings } from '../../../src/settings.ts'
import { createSystemPorts } from '../../../src/system-ports.ts'
import { createWebhook, type CreatedWebhook } from '../../../src/webhooks/create-webhook.ts'
import type { WebhookInput } from '../../../src/webhooks/webhook-input.ts'
import { createMigratedDatabase } from '../../support/migrated.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../../support/receiver.ts'
import { publishEvents } from '../../../src/streams/publish-events.ts'

/** A migrated database, a receiver, and what a test starts between them; all of it ends with `close`. */
export interface World {
  url: string
  db: Db
  receiver: Receiver
  /** A webhook on the receiver's path, from the start of the stream, without jitter. */
  webhook(input?: Partial<WebhookInput> & { path?: string }): Promise<CreatedWebhook>
  /** Publishes `{"n":…}` with the keys given, in one call; returns the offsets. */
  publish(keys: readonly (string | null)[], stream?: string): Promise<number[]>
  /** Starts a forwarder and its engine in this process. */
  start(setup?: Partial<DeliverySetup>): RunningDelivery
  /** Raw SQL, as an operator's psql would run it. */
  sql<Row extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>
  /** Resolves once the query returns what satisfies the condition. */
  until<Row extends object>(text: string, met: (rows: Row[]) => boolean, timeoutMs?: number): Promise<Row[]>
  /** Something to end before the rest. */
  onClose(action: () => Promise<unknown> | void): void
  close(): Promise<void>
}

export const insecureSettings = readSettings({ MILLRACE_ALLOW_INSECURE_TARGETS: '1' })

export async function createWorld(): Promise<World> {
  const database = await createMigratedDatabase()
  const db = createNodePostgresDb({ url: database.url })
  const receiver = await startReceiver()
  const pool = new pg.Pool({ connectionString: database.url, max: 4 })
  // dropping the database ends its sessions
  pool.on('error', () => {})
  const closing: (() => Promise<unknown> | void)[] = []
  let published = 0

  const sql: World['sql'] = async <Row extends object>(text: string, values: unknown[] = []) =>
    (await pool.query<Row>(text, values)).rows

  return {
    url: database.url,
    db,
    receiver,
    webhook: ({ path = '/', ...input } = {}) =>
      createWebhook(
        db,
        { stream: 'orders', url: `${receiver.url}${path}`, from: 'start', jitterPercent: 0, ...input },
        { sealer: null, policy: { allowInsecure: true } },
      ),
    async publish(keys, stream = 'orders') {
      const events = keys.map((key) => ({ type: 'order.created', key, dataText: `{"n":${published++}}` }))
      return (await publishEvents(db, stream, events)).offsets
    },
    start(setup = {}) {
      const ports = createSystemPorts()
      const delivery = startDelivery({ db, settings: insecureSettings, sealer: null, ports, ...setup })
      closing.push(() => delivery.stop({ withinMs: 1_000 }))
      return delivery
    },
    sql,
    async until<Row extends object>(text: string, met: (rows: Row[]) => boolean, timeoutMs = 20_000) {
      const end = Date.now() + timeoutMs
      for (;;) {
        const rows = await sql<Row>(text)
        if (met(rows)) return rows
        if (Date.now() > end) throw new Error(`not within ${timeoutMs} ms: ${JSON.stringify(rows)}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    onClose: (action) => void closing.push(action),
    async close() {
      for (const action of closing.toReversed()) await action()
      await db.close()
      await pool.end()
      await receiver.close()
      await database.drop()
    },
  }
}

/** The offset of a delivery, out of its `webhook-id`. */
export function offsetOf(request: ReceivedRequest): number {
  return Number(/_(\d+)$/.exec(String(request.headers['webhook-id']))?.[1])
}

/** The first arrivals only, in order. */
export function firstArrivals(requests: readonly ReceivedRequest[]): ReceivedRequest[] {
  const seen = new Set<string>()
  return requests.filter((request) => {
    const id = `${request.path} ${String(request.headers['webhook-id'])}`
    if (seen.has(id)) return false
    seen.add(id)
    return true
  })
}
