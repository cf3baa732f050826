// How cost grows: publish and delivery rates by events stored, and by webhooks.
import { publishEvents } from '../../src/streams/publish-events.ts'
import type { Case, Contestant, Part, Sample } from '../harness/case.ts'
import { addWebhooks, removeWebhooks, startEngine } from '../harness/deliveries.ts'
import type { Base, Lab } from '../harness/lab.ts'
import { payloadText, rateOf } from '../harness/load.ts'
import { seedEvents, seedNote } from '../harness/seed.ts'

const event = { type: 'bench.event', key: 'o-1234567', dataText: payloadText }

/** Publishes one event a call, 16 clients, to a stream that nobody delivers. */
async function publishRate({ db }: Base, stream: string, seconds: number): Promise<number> {
  return rateOf(16, seconds, () => publishEvents(db, stream, [event]))
}

/** Delivers a backlog to all webhooks of a stream; `from` is where it begins. */
async function deliveryRate(
  base: Base,
  { receiver }: Lab,
  stream: string,
  webhooks: number,
  events: number,
): Promise<number> {
  await addWebhooks(base, stream, receiver.url, webhooks)
  await base.pool.query(
    'update millrace.webhooks w set "offset" = millrace.last_offset() from millrace.streams s where s.id = w.stream_id and s.name = $1',
    [stream],
  )
  const { done } = await receiver.expect(webhooks * events)
  await publishEvents(
    base.db,
    stream,
    Array.from({ length: events }, (_, n) => ({ ...event, key: `k${n % 500}` })),
  )
  const start = performance.now()
  const running = startEngine(base)
  await done
  const rate = (webhooks * events) / ((performance.now() - start) / 1000)
  await running.stop({ withinMs: 5_000 })
  await removeWebhooks(base)
  return rate
}

/** With so many events stored in the stream itself, beside what this measures. */
async function atStored(
  lab: Lab,
  stored: number,
  quick: boolean,
): Promise<{ base: Base; contestant: Contestant }> {
  const base = await lab.openBase(`stored_${stored}`)
  await seedEvents(base, 'bench', stored)
  const measure = async (): Promise<Sample> => ({
    publish: await publishRate(base, 'bench', quick ? 0.2 : 1.5),
    deliver: await deliveryRate(base, lab, 'bench', 10, quick ? 20 : 500),
  })
  return { base, contestant: { name: String(stored), measure } }
}

/** With so many webhooks on the stream, each of which gets every event. */
function atWebhooks(base: Base, lab: Lab, webhooks: number, deliveries: number): Contestant {
  return {
    name: String(webhooks),
    measure: async () => ({
      deliver: await deliveryRate(
        base,
        lab,
        `webhooks-${webhooks}`,
        webhooks,
        Math.max(1, deliveries / webhooks),
      ),
    }),
  }
}

export const growth: Part = {
  name: 'growth',
  async open(lab, { quick, full }) {
    const stored: Awaited<ReturnType<typeof atStored>>[] = []
    for (const count of quick ? [1000] : [1000, 100_000, ...(full ? [10_000_000] : [])])
      stored.push(await atStored(lab, count, quick))
    const base = await lab.openBase('webhooks')
    const cases: Case[] = [
      {
        id: 'growth-stored',
        title: 'publish (16 clients), and deliver to 10 webhooks, by events stored in the stream',
        units: { publish: 'events/s', deliver: 'deliveries/s' },
        contestants: stored.map(({ contestant }) => contestant),
      },
      {
        id: 'growth-webhooks',
        title: 'deliver, by webhooks on the stream',
        units: { deliver: 'deliveries/s' },
        contestants: (quick ? [1, 100] : [1, 100, 10_000]).map((webhooks) =>
          atWebhooks(base, lab, webhooks, quick ? 200 : 5000),
        ),
      },
    ]
    return {
      cases,
      notes: [seedNote],
      async close() {
        for (const one of [...stored.map(({ base }) => base), base]) await one.close()
      },
    }
  },
}
