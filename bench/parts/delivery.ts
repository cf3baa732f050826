// P4: delivery at full load against a bare loop that signs and sends, at the same concurrency. P6: statements a delivery.
import { createBareSender } from '../harness/bare-sender.ts'
import type { Case, Contestant, Part, Sample } from '../harness/case.ts'
import { addWebhooks, publishKeyed, removeWebhooks, startEngine } from '../harness/deliveries.ts'
import type { Base, Lab } from '../harness/lab.ts'
import { payloadText } from '../harness/load.ts'

interface Load {
  webhooks: number
  events: number
  /** Of the bare loop: what the engine allows itself by default. */
  concurrency: number
}

/** The rate of the bare loop. */
function bare({ receiver }: Lab, { webhooks, events, concurrency }: Load): Contestant {
  return {
    name: 'bare',
    settings: `a loop that signs and sends with undici's request, ${concurrency} at once`,
    async measure() {
      const count = webhooks * events
      const sender = await createBareSender(receiver.url, concurrency)
      const { done } = await receiver.expect(count)
      const start = performance.now()
      await Promise.all([sender.sendMany(count, concurrency, payloadText), done])
      const rate = count / ((performance.now() - start) / 1000)
      await sender.close()
      return { rate }
    },
  }
}

/** Delivers a backlog: from the start of the engine to the last receipt. */
export async function deliverBacklog(base: Base, lab: Lab, load: Omit<Load, 'concurrency'>): Promise<Sample> {
  const stream = `bench-${crypto.randomUUID()}`
  const count = load.webhooks * load.events
  await addWebhooks(base, stream, lab.receiver.url, load.webhooks)
  await publishKeyed(base, stream, load.events)
  const { done } = await lab.receiver.expect(count)
  await base.countStatements()
  const start = performance.now()
  const running = startEngine(base)
  await done
  const rate = count / ((performance.now() - start) / 1000)
  await running.stop({ withinMs: 5_000 })
  const statements = (await base.countStatements()) / count
  await removeWebhooks(base)
  return { rate, statements }
}

export const delivery: Part = {
  name: 'delivery',
  async open(lab, { quick }) {
    const base = await lab.openBase('delivery')
    const loads: Load[] = quick
      ? [
          { webhooks: 1, events: 500, concurrency: 32 },
          { webhooks: 50, events: 10, concurrency: 128 },
        ]
      : [
          { webhooks: 1, events: 20_000, concurrency: 32 },
          { webhooks: 50, events: 400, concurrency: 128 },
        ]
    const cases: Case[] = loads.map((load) => ({
      id: `deliver-${load.webhooks}`,
      title: `deliver ${load.events.toLocaleString('en')} events to ${load.webhooks} webhooks`,
      units: { rate: 'deliveries/s', statements: 'statements/delivery' },
      contestants: [
        {
          name: 'Millrace',
          settings:
            'the engine with its defaults, timed from its start; so many that its connections, LISTEN and claim are a small part, and the same for both',
          measure: () => deliverBacklog(base, lab, load),
        },
        bare(lab, load),
      ],
    }))
    return {
      cases,
      notes: [
        'Statements are counted by pg_stat_statements: all that the clients sent from the start of the engine until it had stopped, LISTEN, claims and flushes included.',
      ],
      close: () => base.close(),
    }
  },
}
