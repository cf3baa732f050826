// P5: publish to receipt at a hundred events a second, against insert + notify + sign and POST done bare.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createBareSender } from '../harness/bare-sender.ts'
import type { Contestant, Part, Sample } from '../harness/case.ts'
import { monotonicMs } from '../harness/clock.ts'
import { addWebhooks, startEngine } from '../harness/deliveries.ts'
import type { Base, Lab } from '../harness/lab.ts'
import { percentile } from '../harness/stats.ts'

const perSecond = 100
/** What the first ones wait for is not what is measured. */
const warmUp = 20

/**
 * Publishes at a steady rate, whether or not what came before has arrived: a system that falls behind shows it.
 * The time runs from just before the publish to the receipt.
 */
async function measureAt(
  { receiver }: Lab,
  count: number,
  publish: (n: number) => Promise<unknown>,
): Promise<Sample> {
  const total = count + warmUp
  const { times } = await receiver.record(total)
  const sent = new Map<number, number>()
  const publishing: Promise<unknown>[] = []
  const start = monotonicMs()
  for (let n = 0; n < total; n++) {
    await delay(Math.max(0, start + (n * 1000) / perSecond - monotonicMs()))
    sent.set(n, monotonicMs())
    publishing.push(publish(n))
  }
  await Promise.all(publishing)
  const received = await times
  const taken = Array.from(received)
    .filter(([n]) => n >= warmUp)
    .map(([n, at]) => at - sent.get(n)!)
  return { p50: percentile(taken, 0.5), p99: percentile(taken, 0.99) }
}

const dataOf = (n: number): string => `{"n":${n},"order":"o-1234567","total":4200}`

async function bare(base: Base, lab: Lab, count: number): Promise<Contestant & { close(): Promise<void> }> {
  await base.pool.query('create table public.bare (id bigserial primary key, data json not null)')
  const sender = await createBareSender(lab.receiver.url, 32)
  const listener = new pg.Client({ connectionString: base.url })
  await listener.connect()
  await listener.query('listen bare')
  listener.on('notification', ({ payload }) => void sender.send('evt_bench', payload!))
  return {
    name: 'bare',
    settings: 'INSERT, then pg_notify with the data by pg; a LISTEN; sign and POST by undici',
    measure: () =>
      measureAt(lab, count, async (n) => {
        await base.pool.query('insert into public.bare (data) values ($1)', [dataOf(n)])
        await base.pool.query("select pg_notify('bare', $1)", [dataOf(n)])
      }),
    async close() {
      await listener.end()
      await sender.close()
    },
  }
}

export const latency: Part = {
  name: 'latency',
  async open(lab, { quick }) {
    const base = await lab.openBase('latency')
    await addWebhooks(base, 'latency', lab.receiver.url, 1)
    const running = startEngine(base)
    await running.forwarder.waitFor('listening')
    const count = quick ? 50 : 300
    const baseline = await bare(base, lab, count)
    const millrace: Contestant = {
      name: 'Millrace',
      settings: 'publishEvents; the engine with its defaults, in the same process',
      measure: () =>
        measureAt(lab, count, (n) =>
          publishEvents(base.db, 'latency', [{ type: 'bench.event', dataText: dataOf(n) }]),
        ),
    }
    return {
      cases: [
        {
          id: 'latency',
          title: `publish to receipt, ${count} events at ${perSecond} a second`,
          units: { p50: 'ms', p99: 'ms' },
          contestants: [millrace, baseline],
        },
      ],
      async close() {
        await running.stop({ withinMs: 1_000 })
        await baseline.close()
        await base.close()
      },
    }
  },
}
