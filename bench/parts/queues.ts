// P7: send by the thousand, then work with ten handlers, with all batching that there is. P8: claim one, ack one.
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import type { Case, Contestant, Part } from '../harness/case.ts'
import { payload, secondsOf } from '../harness/load.ts'
import { openQueuePeers } from '../harness/peers.ts'
import { createTally, type QueuePeer } from '../harness/queue-peer.ts'

const workers = 10

/** As {@link QueuePeer}, so that one loop measures all. */
export function millracePeer(millrace: Millrace): QueuePeer {
  const queue = millrace.queue<object>('bench')
  return {
    name: 'Millrace',
    settings: {
      send: 'send; sendMany',
      batched: `work with concurrency ${workers}, prefetch 500`,
      single: `${workers} loops of claim and ack, which share statements where they are under way at once`,
    },
    send: async (data) => void (await queue.send({ data })),
    sendMany: async (many) => void (await queue.sendMany(many.map((data) => ({ data })))),
    async workBatched(count) {
      const tally = createTally(count)
      const worker = queue.work(() => tally.add(), { concurrency: workers, prefetch: 500 })
      const worked = await tally.all
      await worker.stop()
      return worked
    },
    async workSingle(count) {
      const tally = createTally(count)
      const loop = async (): Promise<void> => {
        for (;;) {
          const { messages } = await queue.claim()
          if (messages.length === 0) return
          await queue.ack(messages)
          tally.add()
        }
      }
      await Promise.all(Array.from({ length: workers }, loop))
      return tally.all
    },
    close: () => millrace.close(),
  }
}

/** Sends so many, a thousand a call. */
export async function sendAll(peer: QueuePeer, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1000) {
    await peer.sendMany(Array.from({ length: Math.min(1000, count - sent) }, () => payload))
  }
}

function batched(peer: QueuePeer, count: number): Contestant {
  return {
    name: peer.name,
    settings: peer.settings.batched,
    async measure() {
      const sending = await secondsOf(() => sendAll(peer, count))
      const { rate } = await peer.workBatched(count)
      return { send: count / sending, work: rate, both: count / (sending + count / rate) }
    },
  }
}

function single(peer: QueuePeer, count: number): Contestant {
  return {
    name: peer.name,
    settings: peer.settings.single,
    async measure() {
      await sendAll(peer, count)
      return { rate: (await peer.workSingle(count)).rate }
    },
  }
}

export const queues: Part = {
  name: 'queues',
  async open(lab, { quick }) {
    const base = await lab.openBase('queues')
    const peers = [millracePeer(createMillrace({ db: base.db })), ...(await openQueuePeers(base.url))]
    const many = quick ? 1000 : 10_000
    const few = quick ? 200 : 1000
    const perSecond = 'messages/s'
    const cases: Case[] = [
      {
        id: 'work-batched',
        title: `send ${many.toLocaleString('en')} by the thousand, then work with ${workers} handlers`,
        units: { send: perSecond, work: perSecond, both: perSecond },
        contestants: peers.map((peer) => batched(peer, many)),
      },
      {
        id: 'work-single',
        title: `claim one, ack one, ${workers} workers`,
        units: { rate: perSecond },
        contestants: peers.map((peer) => single(peer, few)),
      },
    ]
    return {
      cases,
      async close() {
        for (const peer of peers) await peer.close()
        await base.close()
      },
    }
  },
}
