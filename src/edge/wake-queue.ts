import type { Environment } from '../settings.ts'

/** A platform's queue, as far as wakes need one: Cloudflare's binding fits. */
export interface WakeQueue {
  send(body: unknown): Promise<unknown>
}

/** What lies in the queue: streams that may have something to deliver. Only a hint; the rows are the truth. */
export interface Wake {
  streamIds: readonly number[]
}

/** The queue bound as MILLRACE_QUEUE; undefined: none is. */
export function wakeQueueOf(env: Environment): WakeQueue | undefined {
  const binding = env.MILLRACE_QUEUE as Partial<WakeQueue> | undefined
  return typeof binding?.send === 'function' ? (binding as WakeQueue) : undefined
}

/** The streams of some messages, each once. What is no wake is dropped: trying it again would not help. */
export function streamsOf(bodies: readonly unknown[]): number[] {
  const ids = bodies.flatMap((body) => (body as Partial<Wake> | null)?.streamIds ?? [])
  return [...new Set(ids.filter((id) => Number.isSafeInteger(id)))]
}
