import { PgBoss, type Job } from 'pg-boss'
import { createTally, type QueuePeer, type Worked } from '../harness/queue-peer.ts'

const queue = 'bench'
const workers = 10
const batchSize = 100

export async function openPgBoss(url: string): Promise<QueuePeer> {
  // no cron, no monitoring: they have nothing to do here
  const boss = new PgBoss({ connectionString: url, max: 20, schedule: false, supervise: false })
  boss.on('error', (error) => console.error('pg-boss:', error.message))
  await boss.start()
  await boss.createQueue(queue)
  return {
    name: 'pg-boss',
    settings: {
      send: 'send; insert for many',
      batched: `work with localConcurrency ${workers}, batchSize ${batchSize}, burstWhenBatchFull`,
      single: `${workers} loops of fetch and complete`,
    },
    send: async (data) => void (await boss.send(queue, data)),
    sendMany: async (many) =>
      void (await boss.insert(
        queue,
        many.map((data) => ({ data })),
      )),
    workBatched: (count) => workBatched(boss, count),
    workSingle: (count) => workSingle(boss, count),
    close: () => boss.stop({ graceful: false }),
  }
}

async function workBatched(boss: PgBoss, count: number): Promise<Worked> {
  const tally = createTally(count)
  const options = {
    batchSize,
    localConcurrency: workers,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  }
  await boss.work(queue, options, async (jobs: Job[]) => tally.add(jobs.length))
  const worked = await tally.all
  await boss.offWork(queue)
  return worked
}

async function workSingle(boss: PgBoss, count: number): Promise<Worked> {
  const tally = createTally(count)
  const loop = async (): Promise<void> => {
    for (;;) {
      const [job] = await boss.fetch(queue)
      if (job === undefined) return
      await boss.complete(queue, job.id)
      tally.add()
    }
  }
  await Promise.all(Array.from({ length: workers }, loop))
  return tally.all
}
