import { Queue, Worker } from 'bullmq'
import { createTally, type QueuePeer, type Worked } from '../harness/queue-peer.ts'

const queue = 'bench'
const workers = 10

/** @param url of a Redis, `redis://…` */
export async function openBullMq(url: string): Promise<QueuePeer> {
  const connection = { url, maxRetriesPerRequest: null }
  const jobs = new Queue(queue, { connection, defaultJobOptions: { removeOnComplete: true } })
  await jobs.obliterate({ force: true })
  const work = async (count: number, options: { concurrency: number }): Promise<Worked> => {
    const tally = createTally(count)
    const worker = new Worker(queue, async () => tally.add(), { connection, ...options })
    const worked = await tally.all
    await worker.close()
    return worked
  }
  return {
    name: 'bullmq',
    settings: {
      send: 'add; addBulk for many; removeOnComplete',
      batched: 'a worker of concurrency 100, which it recommends for short jobs',
      single: `a worker of concurrency ${workers}`,
    },
    send: async (data) => void (await jobs.add(queue, data)),
    sendMany: async (many) => void (await jobs.addBulk(many.map((data) => ({ name: queue, data })))),
    workBatched: (count) => work(count, { concurrency: 100 }),
    workSingle: (count) => work(count, { concurrency: workers }),
    close: () => jobs.close(),
  }
}
