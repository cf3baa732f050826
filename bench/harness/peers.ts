import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import type { EventLog } from './event-log.ts'
import type { QueuePeer } from './queue-peer.ts'

/** Where BullMQ's Redis is looked for. */
const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const installed = existsSync(new URL('../node_modules', import.meta.url))

/** Opens the job queues of others that are at hand, and says which are not. */
export async function openQueuePeers(url: string): Promise<QueuePeer[]> {
  const peers: QueuePeer[] = []
  if (!installed) return peers
  peers.push(await load<QueuePeer>('graphile-worker', 'openGraphileWorker', url))
  peers.push(await load<QueuePeer>('pg-boss', 'openPgBoss', url))
  if (await answers(redisUrl)) peers.push(await load<QueuePeer>('bullmq', 'openBullMq', redisUrl))
  else console.log(`  BullMQ is left out: no Redis at ${redisUrl} (REDIS_URL says where).`)
  return peers
}

/** Opens the event stores of others that are at hand. */
export async function openEventLogs(url: string): Promise<EventLog[]> {
  return installed ? [await load<EventLog>('emmett', 'openEmmett', url)] : []
}

/** By a name that is made up: what bench/ alone has installed must not be needed to check the rest. */
async function load<Peer>(file: string, open: string, url: string): Promise<Peer> {
  const address = new URL(`../peers/${file}.ts`, import.meta.url).href
  const module = (await import(address)) as Record<string, (url: string) => Promise<Peer>>
  return module[open]!(url)
}

/** Whether something takes connections there. */
function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port || 6379) })
    const end = (reached: boolean): void => {
      socket.destroy()
      resolve(reached)
    }
    socket.once('connect', () => end(true))
    socket.once('error', () => end(false))
    socket.setTimeout(1000, () => end(false))
  })
}
