// Delivery at full load against a bare loop that signs and sends, at the same concurrency, in one run.
import { sql } from 'drizzle-orm'
import { Agent, request } from 'undici'
import { runQuery } from '../src/db/run.ts'
import { startDelivery } from '../src/node/start-delivery.ts'
import { readSettings } from '../src/settings.ts'
import { publishEvents } from '../src/streams/publish-events.ts'
import { createSystemPorts } from '../src/system-ports.ts'
import { createWebhook } from '../src/webhooks/create-webhook.ts'
import { createNodeSigner } from '../src/webhooks/node-sign.ts'
import { generateSecret } from '../src/webhooks/secrets.ts'
import { openLab, spread, type Lab } from './lab.ts'

const rounds = Number(process.env.BENCH_ROUNDS ?? 5)
const data = JSON.stringify({
  order: 'o-1234567',
  total: 4200,
  lines: ['a', 'b', 'c'],
  note: 'x'.repeat(200),
})

/** Requests per second of the bare loop. */
async function bare(lab: Lab, requests: number, concurrency: number): Promise<number> {
  const agent = new Agent({ connections: concurrency })
  const signer = createNodeSigner([(await generateSecret('v1')).secret])
  const { done } = await lab.receiver.expect(requests)
  const start = performance.now()
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < requests) {
      const id = `evt_bench_${next++}`
      const timestamp = Math.floor(Date.now() / 1000)
      const body = `{"type":"bench.event","timestamp":"${new Date().toISOString()}","data":${data}}`
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': await signer.sign(id, timestamp, body),
      }
      const response = await request(lab.receiver.url, { dispatcher: agent, method: 'POST', headers, body })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  await done
  const rate = requests / ((performance.now() - start) / 1000)
  await agent.close()
  return rate
}

/** Deliveries per second of Millrace, and its transactions per delivery as the server counts them. */
async function millrace(
  lab: Lab,
  webhooks: number,
  events: number,
): Promise<{ rate: number; statements: number }> {
  const stream = `bench-${webhooks}-${crypto.randomUUID()}`
  const policy = { allowInsecure: true }
  for (let n = 0; n < webhooks; n++) {
    await createWebhook(lab.db, { stream, url: lab.receiver.url, from: 'start' }, { sealer: null, policy })
  }
  for (let n = 0; n < events; n += 500) {
    const batch = Array.from({ length: Math.min(500, events - n) }, (_, i) => {
      return { type: 'bench.event', key: `k${(n + i) % 500}`, dataText: data }
    })
    await publishEvents(lab.db, stream, batch)
  }
  const { done } = await lab.receiver.expect(webhooks * events)
  const before = await transactions(lab)
  const settings = readSettings({ DATABASE_URL: lab.url, MILLRACE_ALLOW_INSECURE_TARGETS: '1' })
  const start = performance.now()
  const running = startDelivery({ db: lab.db, settings, sealer: null, ports: createSystemPorts() })
  await done
  const seconds = (performance.now() - start) / 1000
  await running.stop({ withinMs: 5_000 })
  const statements = (await transactions(lab)) - before
  await runQuery(lab.db, sql`delete from ${lab.db.tables.webhooks}`)
  return { rate: (webhooks * events) / seconds, statements: statements / (webhooks * events) }
}

/** Every statement of the engine is a transaction of its own. */
async function transactions({ db }: Lab): Promise<number> {
  await runQuery(db, sql`select pg_stat_force_next_flush()`)
  const [row] = await runQuery<{ count: string }>(
    db,
    sql`select (xact_commit + xact_rollback)::text as count from pg_stat_database where datname = current_database()`,
  )
  return Number(row?.count)
}

const lab = await openLab()
const results: object[] = []
try {
  for (const { webhooks, events, concurrency } of [
    { webhooks: 1, events: 5_000, concurrency: 32 },
    { webhooks: 50, events: 200, concurrency: 128 },
    { webhooks: 1_000, events: 10, concurrency: 128 },
  ]) {
    const ratios: number[] = []
    const statements: number[] = []
    await bare(lab, 1_000, concurrency)
    for (let round = 0; round < rounds; round++) {
      const baseline = await bare(lab, webhooks * events, concurrency)
      const measured = await millrace(lab, webhooks, events)
      ratios.push(measured.rate / baseline)
      statements.push(measured.statements)
      console.log(
        `${webhooks} webhooks: ${Math.round(measured.rate)}/s of ${Math.round(baseline)}/s bare, ` +
          `ratio ${(measured.rate / baseline).toFixed(2)}, ${measured.statements.toFixed(4)} statements a delivery`,
      )
    }
    results.push({ webhooks, events, concurrency, ratio: spread(ratios), statements: spread(statements) })
  }
} finally {
  await lab.close()
}
console.log(JSON.stringify(results, null, 2))
