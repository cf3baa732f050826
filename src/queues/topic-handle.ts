import type { Db, TxOption } from '../db/port.ts'
import { assertSharedName } from '../schema/names.ts'
import { encodeMessages, type MessageOf } from './queue-handle.ts'
import { bindQueue, listBindings, publishToTopic, unbindQueue, type TopicPublished } from './topics.ts'

/** A topic: what is published to it goes to every queue that is bound. */
export interface TopicHandle<Data> {
  readonly name: string
  /** Sends messages to every bound queue, all or none. See publishToTopic. */
  publish(messages: readonly MessageOf<Data>[], options?: TxOption): Promise<TopicPublished>
  /** Returns whether it was bound by this call. */
  bind(queue: string, options?: TxOption): Promise<boolean>
  /** Returns whether it was bound. */
  unbind(queue: string, options?: TxOption): Promise<boolean>
  /** The names of the bound queues. */
  queues(options?: TxOption): Promise<string[]>
}

/**
 * A handle on a topic; makes no statement.
 *
 * @throws INVALID_NAME
 */
export function createTopicHandle<Data>(topic: string, db: Db): TopicHandle<Data> {
  assertSharedName('topic', topic)
  return {
    name: topic,
    publish: async (messages, options) => publishToTopic(db, topic, encodeMessages(messages), options),
    bind: (queue, options) => bindQueue(db, { topic, queue }, options),
    unbind: (queue, options) => unbindQueue(db, { topic, queue }, options),
    queues: async (options) => (await listBindings(db, { topic }, options)).map(({ queue }) => queue),
  }
}
