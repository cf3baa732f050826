import { Logger, makeWorkerUtils, run, runMigrations, type RunnerOptions } from 'graphile-worker'
import { createTally, type QueuePeer, type Worked } from '../harness/queue-peer.ts'

const task = 'bench'
const workers = 10
const quiet = new Logger(() => () => {})

export async function openGraphileWorker(url: string): Promise<QueuePeer> {
  const shared = { connectionString: url, logger: quiet, maxPoolSize: 20 }
  await runMigrations(shared)
  const utils = await makeWorkerUtils(shared)
  const work = (count: number, worker: object): Promise<Worked> =>
    workUntil(count, {
      ...shared,
      preset: { worker: { ...worker, connectionString: url, concurrentJobs: workers } },
    })
  return {
    name: 'graphile-worker',
    settings: {
      send: 'addJob; addJobs for many; 20 connections',
      batched: `concurrentJobs ${workers}, localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0`,
      single: `concurrentJobs ${workers}, no local queue, no batches`,
    },
    send: async (data) => void (await utils.addJob(task, data)),
    sendMany: async (many) =>
      void (await utils.addJobs(many.map((payload) => ({ identifier: task, payload })))),
    // as https://worker.graphile.org/docs/performance sets it
    workBatched: (count) =>
      work(count, { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
    workSingle: (count) => work(count, {}),
    close: async () => void (await utils.release()),
  }
}

async function workUntil(count: number, options: RunnerOptions): Promise<Worked> {
  const tally = createTally(count)
  const runner = await run({
    ...options,
    noHandleSignals: true,
    taskList: { [task]: async () => tally.add() },
  })
  const worked = await tally.all
  await runner.stop()
  return worked
}
