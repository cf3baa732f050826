// P12: what a forwarder takes, with ten thousand webhooks that have nothing to do, and when it delivers all it can.
import { setTimeout as delay } from 'node:timers/promises'
import type { Contestant, Part } from '../harness/case.ts'
import { addWebhooks, publishKeyed, removeWebhooks } from '../harness/deliveries.ts'
import { buildForwarder, startForwarderProcess } from '../harness/forwarder-process.ts'
import type { Base, Lab } from '../harness/lab.ts'

/** How long it is left alone before its memory is read: what its start left behind has gone, or has come to stay. */
const idleMs = 5_000

async function idle(base: Base, lab: Lab, webhooks: number): Promise<number> {
  await addWebhooks(base, 'idle', lab.receiver.url, webhooks)
  const forwarder = await startForwarderProcess(base.url)
  await delay(idleMs)
  const { now } = await forwarder.memory()
  await forwarder.stop()
  await removeWebhooks(base)
  return now
}

async function load(base: Base, lab: Lab, webhooks: number, events: number): Promise<number> {
  await addWebhooks(base, 'load', lab.receiver.url, webhooks)
  await publishKeyed(base, 'load', events)
  const { done } = await lab.receiver.expect(webhooks * events)
  const forwarder = await startForwarderProcess(base.url)
  await done
  const { most } = await forwarder.memory()
  await forwarder.stop()
  await removeWebhooks(base)
  return most
}

const millrace = (settings: string, measure: () => Promise<number>): Contestant[] => [
  { name: 'Millrace', settings, measure: async () => ({ rss: await measure() }) },
]

/** Elsewhere the kernel does not tell the most that was resident. */
const notHere = { cases: [], notes: ['Memory is measured on Linux only.'], close: async () => {} }

export const memory: Part = {
  name: 'memory',
  async open(lab, { quick }) {
    if (process.platform !== 'linux') return notHere
    buildForwarder()
    const base = await lab.openBase('memory')
    const [webhooks, busy, events] = quick ? [100, 10, 50] : [10_000, 200, 200]
    const units = { rss: 'MB' }
    return {
      cases: [
        {
          id: 'memory-idle',
          title: `a forwarder with ${webhooks.toLocaleString('en')} idle webhooks`,
          units,
          once: true,
          contestants: millrace('resident set after 5 s', () => idle(base, lab, webhooks)),
        },
        {
          id: 'memory-load',
          title: `a forwarder that delivers ${(busy * events).toLocaleString('en')} times to ${busy} webhooks`,
          units,
          once: true,
          contestants: millrace('the most that was resident', () => load(base, lab, busy, events)),
        },
      ],
      close: () => base.close(),
    }
  },
}
