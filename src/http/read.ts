import type { Context } from 'hono'
import { invalidInput } from '../errors/millrace-error.ts'
import { readEvents, type EventPage, type ReadRange } from '../streams/read-events.ts'
import type { AppOptions } from './context.ts'
import { eventPageText } from './event-page.ts'
import { eventStream } from './event-stream.ts'
import { waitForPage } from './long-poll.ts'
import { list, queryOf, wholeNumber } from './query.ts'
import type { Handler } from './resource.ts'

/** Proxies cut silent connections after a minute, some after half of one. */
const maxWaitSeconds = 30

/**
 * `GET /v1/streams/{stream}/events?after=&limit=&type=&wait=`: the events after an offset, in order.
 * `after` defaults to 0, `limit` to 100 (at most 1000; 0 and less reads nothing). With `wait`, up to 30
 * seconds, an answer that would be empty is held back until there is something. `Accept:
 * text/event-stream` streams instead, see event-stream.ts.
 */
export function readStream(options: AppOptions): Handler<'/v1/streams/:stream/events'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['after', 'limit', 'type', 'wait'])
    const stream = c.req.param('stream')
    const range = { ...pageRange(query), after: wholeNumber(query, 'after') }
    if (c.req.header('accept')?.includes('text/event-stream')) return eventStream(c, options, stream, range)
    const waitMs = waitOf(query)
    const page = await readEvents(options.db, stream, range)
    const nothingAskedFor = range.limit !== undefined && range.limit <= 0
    if (waitMs === 0 || page.events.length > 0 || nothingAskedFor) return pageResponse(c, page)
    return pageResponse(
      c,
      await waitForPage(options, { stream, range: { ...range, after: page.next }, waitMs }, c.req.raw.signal),
    )
  }
}

function waitOf(query: URLSearchParams): number {
  const seconds = wholeNumber(query, 'wait') ?? 0
  if (seconds < 0 || seconds > maxWaitSeconds)
    throw invalidInput('wait', `must be 0 to ${maxWaitSeconds} seconds`)
  return seconds * 1000
}

/** The `limit` and `type` of a query; `type` may be repeated, and hold several with commas between. */
export function pageRange(query: URLSearchParams): ReadRange {
  const limit = wholeNumber(query, 'limit')
  const types = list(query, 'type')
  return { ...(limit === undefined ? {} : { limit }), ...(types === undefined ? {} : { types }) }
}

/** A page of events as the answer. */
export function pageResponse(c: Context, page: EventPage): Response {
  return c.body(eventPageText(page), 200, { 'content-type': 'application/json' })
}
