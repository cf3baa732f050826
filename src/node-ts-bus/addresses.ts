import { sql } from 'drizzle-orm'
import { toNumber } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'
import { ensureQueue } from '../queues/queue-settings.ts'
import { bindQueue, listBindings } from '../queues/topics.ts'
import { topicPrefix } from './topic-name.ts'

/** What an endpoint must have before it can receive. */
export interface Subscriptions {
  queue: string
  topics: readonly string[]
}

/**
 * The database's number of a queue. One statement.
 *
 * @throws ENDPOINT_NOT_FOUND
 */
export async function findQueue(db: Db, queue: string, options: TxOption = {}): Promise<number> {
  const on = executorFor(db, options)
  const [row] = await runQuery<{ id: number }>(
    on,
    sql`select id from ${on.tables.queues} where name = ${queue}::text`,
  )
  if (row !== undefined) return toNumber(row.id)
  throw new MillraceError('ENDPOINT_NOT_FOUND', `there is no queue "${queue}"`, { details: { queue } })
}

/** Makes the queue and the bindings that are missing; takes none away. Returns the queue's number. */
export async function provision(db: Db, log: Log, wanted: Subscriptions): Promise<number> {
  const id = await ensureQueue(db, wanted.queue)
  const bound = await boundTopics(db, wanted.queue)
  for (const topic of wanted.topics) {
    if (!bound.has(topic)) await bindQueue(db, { topic, queue: wanted.queue })
  }
  warnOfOthers(log, wanted, bound)
  return id
}

/**
 * Makes nothing, and returns the queue's number.
 *
 * @throws ENDPOINT_NOT_FOUND, naming the topics that the queue is not bound to
 */
export async function verify(db: Db, log: Log, wanted: Subscriptions): Promise<number> {
  const id = await findQueue(db, wanted.queue)
  const bound = await boundTopics(db, wanted.queue)
  const missing = wanted.topics.filter((topic) => !bound.has(topic))
  if (missing.length > 0) {
    throw new MillraceError(
      'ENDPOINT_NOT_FOUND',
      `queue "${wanted.queue}" is not bound to the topics ${missing.join(', ')}`,
      { details: { queue: wanted.queue, missing } },
    )
  }
  warnOfOthers(log, wanted, bound)
  return id
}

async function boundTopics(db: Db, queue: string): Promise<Set<string>> {
  return new Set((await listBindings(db, { queue })).map(({ topic }) => topic))
}

/** The bus drops a message that nothing handles. To end the binding is a person's decision: another version may run. */
function warnOfOthers(log: Log, wanted: Subscriptions, bound: Set<string>): void {
  const others = [...bound].filter((topic) => topic.startsWith(topicPrefix) && !wanted.topics.includes(topic))
  if (others.length === 0) return
  log.warn(
    { queue: wanted.queue, topics: others },
    'The queue is bound to messages that nothing here handles.',
  )
}
