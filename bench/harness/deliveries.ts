import { startDelivery, type RunningDelivery } from '../../src/node/start-delivery.ts'
import { readSettings } from '../../src/settings.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import type { Base } from './lab.ts'
import { payloadText, together } from './load.ts'

const rules = { sealer: null, policy: { allowInsecure: true } }

/** Registers so many webhooks on a stream, all with the same receiver. */
export async function addWebhooks({ db }: Base, stream: string, url: string, count: number): Promise<void> {
  let left = count
  await together(Math.min(10, count), async () => {
    while (left-- > 0) await createWebhook(db, { stream, url, from: 'start' }, rules)
  })
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
