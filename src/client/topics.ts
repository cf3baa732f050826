import { bodyWithData } from './data.ts'
import type { NewMessage } from './queues.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions, PageOptions } from './types.ts'

/** A topic at the server: what is published to it goes to every queue that is bound. */
export interface TopicClient {
  readonly name: string
  /** Sends messages to every bound queue, all or none; with nobody bound nothing is sent, and that is no error. */
  publish(messages: readonly NewMessage[], options?: CallOptions): Promise<{ queues: number; sent: number }>
  /** Returns whether it was bound by this call. */
  bind(queue: string, options?: CallOptions): Promise<boolean>
  /** @throws NOT_FOUND when it is not bound */
  unbind(queue: string, options?: CallOptions): Promise<void>
  /** A page of the names of the bound queues. */
  queues(options?: PageOptions): Promise<{ queues: string[]; next: string | null }>
}

/** @throws INVALID_NAME for names that a URL cannot carry */
export function createTopic(send: Send, name: string): TopicClient {
  const path = `/v1/topics/${segment('topic', name)}`
  const binding = (queue: string): string => `${path}/queues/${segment('queue', queue)}`
  return {
    name,
    async publish(messages, { signal } = {}) {
      const texts = messages.map((message, index) => bodyWithData(message, `[${index}].`))
      const body = `[${texts.join(',')}]`
      return jsonOf(await send({ method: 'POST', path: `${path}/messages`, body, signal }))
    },
    bind: async (queue, { signal } = {}) =>
      (await send({ method: 'PUT', path: binding(queue), signal })).status === 201,
    async unbind(queue, { signal } = {}) {
      await send({ method: 'DELETE', path: binding(queue), signal })
    },
    async queues({ limit, cursor, signal } = {}) {
      const { queues, next } = jsonOf<{ queues: string[]; next: string | null }>(
        await send({ path, query: { limit, cursor }, signal }),
      )
      return { queues, next }
    },
  }
}

/** A page of the topics of a server that something is bound to, by name. */
export async function listTopics(
  send: Send,
  { limit, cursor, signal }: PageOptions = {},
): Promise<{ topics: { topic: string; queues: number }[]; next: string | null }> {
  return jsonOf(await send({ path: '/v1/topics', query: { limit, cursor }, signal }))
}
