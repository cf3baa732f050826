import type { Context } from 'hono'
import { invalidInput } from '../errors/millrace-error.ts'
import { createPollingAttach } from '../streams/poll-wake.ts'
import { readEvents, type ReadRange } from '../streams/read-events.ts'
import { subscribe } from '../streams/subscribe.ts'
import type { AppOptions } from './context.ts'
import { eventText } from './event-page.ts'
import { serverSentEvents, sseMessage } from './server-sent-events.ts'

/**
 * A stream as server-sent events: one message an event, its `id` the offset and its `data` what a page holds
 * of it. `Last-Event-ID` resumes, and wins over `after`. Reads only as fast as the client takes.
 */
export async function eventStream(
  c: Context,
  options: AppOptions,
  stream: string,
  range: ReadRange,
): Promise<Response> {
  const { db, ports } = options
  const after = lastEventId(c) ?? range.after ?? 0
  // a bad position is an error with a status, not a broken stream
  await readEvents(db, stream, { ...range, after, limit: 1 })
  return serverSentEvents(options, c.req.raw, (signal) => {
    const parts = { db, attach: options.attach ?? createPollingAttach(ports.clock), clock: ports.clock }
    const consumer = { stream, consumer: 'event-stream' }
    const events = subscribe(parts, consumer, { after, types: range.types, signal })
    return {
      async next() {
        const { done, value } = await events.next()
        return done ? null : sseMessage({ id: String(value.offset), data: eventText(value) })
      },
    }
  })
}

function lastEventId(c: Context): number | undefined {
  const text = c.req.header('last-event-id')
  if (text === undefined || text === '') return undefined
  const offset = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(offset)) throw invalidInput('Last-Event-ID', 'must be an offset')
  return offset
}
