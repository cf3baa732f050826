// P1: one event a call, 16 clients. P2: a thousand a call.
import { publishEvents } from '../../src/streams/publish-events.ts'
import type { Case, Contestant, Part } from '../harness/case.ts'
import type { EventLog } from '../harness/event-log.ts'
import type { Base } from '../harness/lab.ts'
import { startListener } from '../harness/listener-process.ts'
import { payload, payloadText, rateOf } from '../harness/load.ts'
import { openEventLogs, openQueuePeers } from '../harness/peers.ts'
import type { QueuePeer } from '../harness/queue-peer.ts'

const clients = 16
const atOnce = 1000
const event = { type: 'bench.event', key: 'o-1234567', dataText: payloadText }

/** The columns of `events`, numbered by the table itself, with the index that Millrace's has. */
const bareTable = `create table public.bare (
  stream_id integer not null, "offset" bigserial, type text not null, key text, data json not null, headers json,
  published_at timestamptz not null default clock_timestamp(), primary key (stream_id, "offset"))`
const bareOne = `insert into public.bare (stream_id, type, key, data) values ($1, $2, $3, $4) returning "offset"`
const bareMany = `insert into public.bare (stream_id, type, key, data)
  select $1, * from unnest($2::text[], $3::text[], $4::json[]) returning "offset"`

function publishOne(
  { db, pool }: Base,
  logs: EventLog[],
  queues: QueuePeer[],
  seconds: number,
): Contestant[] {
  const one = (name: string, settings: string, work: (client: number) => Promise<unknown>): Contestant => ({
    name,
    settings,
    measure: async () => ({ rate: await rateOf(clients, seconds, work) }),
  })
  return [
    one(
      'Millrace',
      'publishEvents, whose calls share statements where they are under way at once; one listener in another process',
      () => publishEvents(db, 'bench', [event]),
    ),
    one('bare', 'INSERT … RETURNING by pg, no notify', () =>
      pool.query(bareOne, [1, event.type, event.key, payloadText]),
    ),
    ...queues.map((peer) => one(peer.name, peer.settings.send, () => peer.send(payload))),
    ...logs.map((log) =>
      one(log.name, log.settings.append, (client) => log.append(`bench-${client}`, [payload])),
    ),
  ]
}

function publishMany(
  { db, pool }: Base,
  logs: EventLog[],
  queues: QueuePeer[],
  seconds: number,
): Contestant[] {
  const many = (name: string, settings: string, work: () => Promise<unknown>): Contestant => ({
    name,
    settings,
    measure: async () => ({ rate: atOnce * (await rateOf(1, seconds, work)) }),
  })
  const events = Array.from({ length: atOnce }, () => event)
  const data = Array.from({ length: atOnce }, () => payload)
  const columns = [
    events.map((one) => one.type),
    events.map((one) => one.key),
    events.map((one) => one.dataText),
  ]
  return [
    many('Millrace', 'publishEvents', () => publishEvents(db, 'bench', events)),
    many('bare', 'INSERT … SELECT unnest … RETURNING by pg', () => pool.query(bareMany, [1, ...columns])),
    ...queues.map((peer) => many(peer.name, peer.settings.send, () => peer.sendMany(data))),
    ...logs.map((log) => many(log.name, log.settings.append, () => log.append('bench-many', data))),
  ]
}

export const publish: Part = {
  name: 'publish',
  async open(lab, { quick }) {
    const base = await lab.openBase('publish')
    const listener = await startListener(base.url)
    await base.pool.query(bareTable)
    const logs = await openEventLogs(base.url)
    const queues = await openQueuePeers(base.url)
    const seconds = quick ? 0.2 : 2
    const units = { rate: 'events/s' }
    const cases: Case[] = [
      {
        id: 'publish-one',
        title: `publish one event, ${clients} clients, wakes on, one listener`,
        units,
        contestants: publishOne(base, logs, queues, seconds),
      },
      {
        id: 'publish-many',
        title: 'publish 1,000 at once, one client',
        units,
        contestants: publishMany(base, logs, queues, seconds),
      },
    ]
    return {
      cases,
      async close() {
        listener.stop()
        for (const peer of [...queues, ...logs]) await peer.close()
        await base.close()
      },
    }
  },
}
