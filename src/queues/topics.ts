import { and, asc, eq, sql } from 'drizzle-orm'
import { toNumber, toNumbers } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery, translated } from '../db/run.ts'
import { assertReadableName, assertSharedName } from '../schema/names.ts'
import type { NewMessage } from './message.ts'
import { sendArguments } from './send-arguments.ts'

/** Which queue is fed by which topic. */
export interface TopicBinding {
  topic: string
  queue: string
}

/**
 * Makes a queue receive what is published to a topic from now on, making the queue if need be. To bind
 * it twice is to bind it once. Returns whether it was bound by this call.
 *
 * @throws INVALID_NAME
 */
export async function bindQueue(db: Db, binding: TopicBinding, options: TxOption = {}): Promise<boolean> {
  assertSharedName('topic', binding.topic)
  assertSharedName('queue', binding.queue)
  const on = executorFor(db, options)
  const rows = await runQuery(
    on,
    sql`insert into ${on.tables.topicBindings} (topic, queue_id)
      select ${binding.topic}::text, ${qualified(on, 'ensure_queue')}(${binding.queue}::text)
      on conflict do nothing returning 1 as bound`,
  )
  return rows.length > 0
}

/**
 * Ends a binding; what was published before stays in the queue. Returns whether there was one.
 *
 * @throws INVALID_NAME
 */
export async function unbindQueue(db: Db, binding: TopicBinding, options: TxOption = {}): Promise<boolean> {
  assertSharedName('topic', binding.topic)
  assertSharedName('queue', binding.queue)
  const on = executorFor(db, options)
  const rows = await runQuery(
    on,
    sql`delete from ${on.tables.topicBindings} b using ${on.tables.queues} q
      where q.id = b.queue_id and b.topic = ${binding.topic}::text and q.name = ${binding.queue}::text
      returning 1 as unbound`,
  )
  return rows.length > 0
}

/**
 * The bindings of a topic, of a queue, or all, by topic and queue.
 *
 * @throws INVALID_NAME
 */
export async function listBindings(
  db: Db,
  filter: Partial<TopicBinding> = {},
  options: TxOption = {},
): Promise<TopicBinding[]> {
  if (filter.topic !== undefined) assertReadableName('topic', filter.topic)
  if (filter.queue !== undefined) assertReadableName('queue', filter.queue)
  const on = executorFor(db, options)
  const { topicBindings, queues } = on.tables
  return translated(
    on.drizzle
      .select({ topic: topicBindings.topic, queue: queues.name })
      .from(topicBindings)
      .innerJoin(queues, eq(queues.id, topicBindings.queueId))
      .where(
        and(
          filter.topic === undefined ? undefined : eq(topicBindings.topic, filter.topic),
          filter.queue === undefined ? undefined : eq(queues.name, filter.queue),
        ),
      )
      .orderBy(asc(topicBindings.topic), asc(queues.name)),
  )
}

/** A topic that queues are bound to. */
export interface TopicSummary {
  topic: string
  /** How many queues are bound. */
  queues: number
}

/** Which part of a list is wanted. */
export interface TopicRange {
  /** Only names after this one, by code point. */
  after?: string
  /** At most so many: 1 to 1000. */
  limit: number
}

/** The topics that something is bound to, by name, a page at a time. One statement. */
export async function listTopics(db: Db, { after = '', limit }: TopicRange): Promise<TopicSummary[]> {
  const rows = await runQuery<{ topic: string; queues: string }>(
    db,
    sql`select b.topic, count(*)::text as queues from ${db.tables.topicBindings} b
      where b.topic collate "C" > ${after}::text
      group by b.topic order by b.topic collate "C" limit ${limit}::integer`,
  )
  return rows.map(({ topic, queues }) => ({ topic, queues: toNumber(queues) }))
}

/**
 * The queues that are bound to a topic, by name, a page at a time. One statement.
 *
 * @throws INVALID_NAME
 */
export async function listBoundQueues(
  db: Db,
  topic: string,
  { after = '', limit }: TopicRange,
): Promise<string[]> {
  assertReadableName('topic', topic)
  const rows = await runQuery<{ name: string }>(
    db,
    sql`select q.name from ${db.tables.topicBindings} b join ${db.tables.queues} q on q.id = b.queue_id
      where b.topic = ${topic}::text and q.name collate "C" > ${after}::text
      order by q.name collate "C" limit ${limit}::integer`,
  )
  return rows.map(({ name }) => name)
}

/** What {@link publishToTopic} returns. */
export interface TopicPublished {
  /** The database's numbers of the queues that are bound; none is no error. */
  queueIds: number[]
  /** How many messages were sent in all, duplicates not counted. */
  sent: number
}

/**
 * Sends messages to every queue that is bound to a topic, in one statement, all or none. A dedupe key
 * counts per queue. With nobody bound nothing is sent, and the answer says so. With `{ tx }` it counts
 * with the caller's commit (Q3).
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export async function publishToTopic(
  db: Db,
  topic: string,
  messages: readonly NewMessage[],
  options: TxOption = {},
): Promise<TopicPublished> {
  assertSharedName('topic', topic)
  const args = sendArguments(messages)
  const on = executorFor(db, options)
  const statement =
    options.tx === undefined
      ? sql`call ${qualified(on, 'publish_to_topic')}(${topic}::text, ${args}, null, null)`
      : sql`select s.o_queue_ids, s.o_sent, ${qualified(on, 'wake_queues')}(s.o_queue_ids)
        from ${qualified(on, 'send_to_topic')}(${topic}::text, ${args}) s`
  const [row] = await runQuery<{ o_queue_ids: unknown; o_sent: unknown }>(on, statement)
  if (row === undefined) throw new Error('publish returned no row')
  return { queueIds: toNumbers(row.o_queue_ids), sent: toNumber(row.o_sent) }
}
