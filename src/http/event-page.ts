import type { StoredEvent } from '../streams/event.ts'
import type { EventPage } from '../streams/read-events.ts'

/**
 * A page of events as the text of the answer. It is put together by hand so that each event's data
 * goes out byte for byte as it was published (S9).
 */
export function eventPageText(page: EventPage): string {
  const events = page.events.map(eventText).join(',')
  return `{"events":[${events}],"next":${page.next},"horizon":${page.horizon}}`
}

/** One event as JSON text, its data verbatim. */
export function eventText(event: StoredEvent): string {
  const members = [
    `"offset":${event.offset}`,
    `"type":${JSON.stringify(event.type)}`,
    `"key":${JSON.stringify(event.key)}`,
    `"data":${event.dataText}`,
    `"headers":${JSON.stringify(event.headers)}`,
    `"publishedAt":"${event.publishedAt.toISOString()}"`,
  ]
  return `{${members.join(',')}}`
}
