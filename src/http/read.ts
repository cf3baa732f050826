import type { Context } from 'hono'
import { readEvents, type EventPage, type ReadRange } from '../streams/read-events.ts'
import type { AppOptions } from './context.ts'
import { eventPageText } from './event-page.ts'
import { list, queryOf, wholeNumber } from './query.ts'
import type { Handler } from './resource.ts'

/**
 * `GET /v1/streams/{stream}/events?after=&limit=&type=`: the events after an offset, in order.
 * `after` defaults to 0, `limit` to 100 (at most 1000; 0 and less reads nothing).
 */
export function readStream(options: AppOptions): Handler<'/v1/streams/:stream/events'> {
  return async (c) => {
    const query = queryOf(c.req.raw, ['after', 'limit', 'type'])
    const after = wholeNumber(query, 'after')
    const range = { ...pageRange(query), ...(after === undefined ? {} : { after }) }
    return pageResponse(c, await readEvents(options.db, c.req.param('stream'), range))
  }
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
