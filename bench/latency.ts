// Publish to receipt on an idle system, against insert + notify + POST done bare, in one run.
import { sql } from 'drizzle-orm'
import pg from 'pg'
import { Agent, request } from 'undici'
import { startDelivery } from '../src/node/start-delivery.ts'
import { readSettings } from '../src/settings.ts'
import { publishEvents } from '../src/streams/publish-events.ts'
import { createSystemPorts } from '../src/system-ports.ts'
import { createWebhook } from '../src/webhooks/create-webhook.ts'
import { openLab, percentile, type Lab } from './lab.ts'

const samples = Number(process.env.BENCH_SAMPLES ?? 200)
const data = JSON.stringify({ order: 'o-1234567', total: 4200 })

/** A pause in which everything goes idle: longer than any lease is lingered on. */
const idle = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 20))

async function bareSamples(lab: Lab): Promise<() => Promise<number>> {
  await lab.db.drizzle.execute(sql`create table public.bare (id bigserial primary key, data json not null)`)
  const listener = new pg.Client({ connectionString: lab.url })
  await listener.connect()
  await listener.query('listen bare')
  const agent = new Agent()
  listener.on('notification', () => {
    const headers = { 'content-type': 'application/json' }
    void request(lab.receiver.url, { dispatcher: agent, method: 'POST', headers, body: data }).then((r) =>
      r.body.dump(),
    )
  })
  const publisher = new pg.Client({ connectionString: lab.url })
  await publisher.connect()
  return async () => {
    const { at } = await lab.receiver.next()
    await idle()
    const start = process.hrtime.bigint()
    await publisher.query('insert into public.bare (data) values ($1)', [data])
    await publisher.query("select pg_notify('bare', '')")
    return Number((await at) - start) / 1e6
  }
}

async function millraceSamples(
  lab: Lab,
): Promise<{ sample: () => Promise<number>; stop: () => Promise<void> }> {
  const rules = { sealer: null, policy: { allowInsecure: true } }
  await createWebhook(lab.db, { stream: 'latency', url: lab.receiver.url }, rules)
  const settings = readSettings({ DATABASE_URL: lab.url, MILLRACE_ALLOW_INSECURE_TARGETS: '1' })
  const running = startDelivery({ db: lab.db, settings, sealer: null, ports: createSystemPorts() })
  await running.forwarder.waitFor('listening')
  return {
    async sample() {
      const { at } = await lab.receiver.next()
      await idle()
      const start = process.hrtime.bigint()
      await publishEvents(lab.db, 'latency', [{ type: 'bench.event', dataText: data }])
      return Number((await at) - start) / 1e6
    },
    stop: () => running.stop({ withinMs: 1_000 }),
  }
}

const lab = await openLab()
try {
  const bare = await bareSamples(lab)
  const { sample, stop } = await millraceSamples(lab)
  const times = { bare: [] as number[], millrace: [] as number[] }
  for (let n = 0; n < samples + 20; n++) {
    const [a, b] = [await bare(), await sample()]
    if (n < 20) continue
    times.bare.push(a)
    times.millrace.push(b)
  }
  await stop()
  const report = Object.entries(times).map(([name, values]) => {
    return { name, p50: percentile(values, 0.5), p99: percentile(values, 0.99) }
  })
  console.log(JSON.stringify(report, null, 2))
  console.log(`p50 ratio ${((report[1]?.p50 ?? 0) / (report[0]?.p50 ?? 1)).toFixed(2)}`)
} finally {
  await lab.close()
  process.exit()
}
