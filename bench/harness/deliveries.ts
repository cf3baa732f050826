import { startDelivery, type RunningDelivery } from '../../src/node/start-delivery.ts'
import { readSettings } from '../../src/settings.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import type { Base } from './lab.ts'
import { payloadText } from './load.ts'

const rules = { sealer: null, policy: { allowInsecure: true } }

/** Registers so many webhooks on a stream, all with the same receiver: one, and copies of it made by the database. */
export async function addWebhooks(
  { db, pool }: Base,
  stream: string,
  url: string,
  count: number,
): Promise<void> {
  const { id } = await createWebhook(db, { stream, url, from: 'start' }, rules)
  await pool.query(
    `with copied as (
       insert into millrace.webhooks (id, stream_id, url, types, ordering, format, signature, state, max_attempts,
           schedule_ms, jitter_percent, timeout_ms, rate_limit, headers, "offset")
         select w.id || 'n' || n, w.stream_id, w.url, w.types, w.ordering, w.format, w.signature, w.state, w.max_attempts,
             w.schedule_ms, w.jitter_percent, w.timeout_ms, w.rate_limit, w.headers, w."offset"
           from millrace.webhooks w, generate_series(2, $2::integer) n where w.id = $1
         returning id)
     insert into millrace.webhook_secrets (id, webhook_id, sealed)
       select c.id, c.id, s.sealed from copied c, millrace.webhook_secrets s where s.webhook_id = $1`,
    [id, count],
  )
}

/** Removes all webhooks. */
export async function removeWebhooks({ pool }: Base): Promise<void> {
  await pool.query('delete from millrace.webhooks')
}

/** Publishes so many events under 500 keys. */
export async function publishKeyed({ db }: Base, stream: string, count: number): Promise<void> {
  const perCall = 500
  for (let n = 0; n < count; n += perCall) {
    const batch = Array.from({ length: Math.min(perCall, count - n) }, (_, i) => ({
      type: 'bench.event',
      key: `k${(n + i) % perCall}`,
      dataText: payloadText,
    }))
    await publishEvents(db, stream, batch)
  }
}

/** Starts what a forwarder on a VM runs: the LISTEN and the engine, with their defaults. */
export function startEngine({ db, url }: Base): RunningDelivery {
  const settings = readSettings({ DATABASE_URL: url, MILLRACE_ALLOW_INSECURE_TARGETS: '1' })
  return startDelivery({ db, settings, sealer: null, ports: createSystemPorts() })
}
