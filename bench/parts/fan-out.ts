// P10: one event to a thousand webhooks, again and again, against the rate at fifty.
import { publishEvents } from '../../src/streams/publish-events.ts'
import type { Part, Sample } from '../harness/case.ts'
import { addWebhooks, removeWebhooks, startEngine } from '../harness/deliveries.ts'
import type { Base, Lab } from '../harness/lab.ts'
import { payloadText } from '../harness/load.ts'
import { deliverBacklog } from './delivery.ts'

/** From the publish of each event to its last receipt; the next one is published after that. */
async function fanOut(base: Base, { receiver }: Lab, webhooks: number, events: number): Promise<Sample> {
  const stream = `fan-${crypto.randomUUID()}`
  await addWebhooks(base, stream, receiver.url, webhooks)
  const running = startEngine(base)
  await running.forwarder.waitFor('listening')
  const publish = async (): Promise<void> => {
    const { done } = await receiver.expect(webhooks)
    await publishEvents(base.db, stream, [{ type: 'bench.event', dataText: payloadText }])
    await done
  }
  await publish()
  const start = performance.now()
  for (let n = 0; n < events; n++) await publish()
  const rate = (webhooks * events) / ((performance.now() - start) / 1000)
  await running.stop({ withinMs: 5_000 })
  await removeWebhooks(base)
  return { rate }
}

export const fanOutPart: Part = {
  name: 'fan-out',
  async open(lab, { quick }) {
    const base = await lab.openBase('fan_out')
    // as many deliveries on both sides
    const [webhooks, events] = quick ? [100, 2] : [1000, 20]
    return {
      cases: [
        {
          id: 'fan-out',
          title: `one event to ${webhooks.toLocaleString('en')} webhooks, ${events} times`,
          units: { rate: 'deliveries/s' },
          contestants: [
            {
              name: 'Millrace',
              settings: 'the engine runs and is idle; from the publish to the last receipt',
              measure: () => fanOut(base, lab, webhooks, events),
            },
            {
              name: '50 webhooks',
              settings: 'a backlog, as in P4',
              async measure() {
                const { rate } = await deliverBacklog(base, lab, { webhooks: 50, events: quick ? 10 : 400 })
                return { rate: rate! }
              },
            },
          ],
        },
      ],
      close: () => base.close(),
    }
  },
}
