import { invalidInput } from '../errors/millrace-error.ts'

/** How a webhook's body is made up. */
export type WebhookFormat = 'standard' | 'raw' | 'cloudevents' | 'cloudevents-binary'

/** An event as it is to be delivered. */
export interface EventToFormat {
  /** The `webhook-id`: the same on every attempt. */
  id: string
  type: string
  key: string | null
  /** The JSON text of the data, exactly as published. */
  dataText: string
  /** RFC 3339, such as `2026-01-15T12:00:00.000Z`. */
  publishedAt: string
  streamName: string
}

/** A body, and the headers that belong to it beside `content-type`. */
export interface FormattedEvent {
  contentType: string
  headers: Record<string, string>
  body: string
}

/**
 * Makes the body of a delivery. The same event gives the same bytes every time, and the
 * data's text is never parsed: numbers, key order and escapes stay as published (S9, W2).
 * @throws INVALID_INPUT (field `format`)
 */
export function formatEvent(format: WebhookFormat, event: EventToFormat): FormattedEvent {
  switch (format) {
    case 'standard':
      return standard(event)
    case 'raw':
      return { contentType: 'application/json', headers: {}, body: event.dataText }
    case 'cloudevents':
      return cloudEvent(event)
    case 'cloudevents-binary':
      return binaryCloudEvent(event)
    default:
      throw invalidInput('format', 'must be standard, raw, cloudevents or cloudevents-binary')
  }
}

/** Source: Standard Webhooks 1.0.0, "Payload structure". */
function standard({ type, publishedAt, dataText }: EventToFormat): FormattedEvent {
  const body = `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(publishedAt)},"data":${dataText}}`
  return { contentType: 'application/json', headers: {}, body }
}

/** Source: CloudEvents 1.0.2, JSON format, section 3. */
function cloudEvent(event: EventToFormat): FormattedEvent {
  const members = attributesOf(event).map(([name, value]) => `"${name}":${JSON.stringify(value)}`)
  const body = `{${members.join(',')},"datacontenttype":"application/json","data":${event.dataText}}`
  return { contentType: 'application/cloudevents+json; charset=utf-8', headers: {}, body }
}

/** Source: CloudEvents 1.0.2, HTTP protocol binding, section 3.1. */
function binaryCloudEvent(event: EventToFormat): FormattedEvent {
  const headers = attributesOf(event).map(([name, value]) => [`ce-${name}`, encodeHeaderValue(value)])
  return { contentType: 'application/json', headers: Object.fromEntries(headers), body: event.dataText }
}

/** The context attributes, always in this order. An empty subject is not allowed, so it is left out. */
function attributesOf({ id, type, key, publishedAt, streamName }: EventToFormat): [string, string][] {
  return [
    ['specversion', '1.0'],
    ['id', id],
    ['source', `/streams/${encodeURIComponent(streamName)}`],
    ['type', type],
    ...(key === null || key === '' ? [] : [['subject', key] satisfies [string, string]]),
    ['time', publishedAt],
  ]
}

/**
 * Percent-encodes, as UTF-8, all but printable ASCII, and space, `"` and `%`.
 * Source: CloudEvents 1.0.2, HTTP protocol binding, section 3.1.3.2.
 */
function encodeHeaderValue(value: string): string {
  // toWellFormed: half a surrogate pair has no UTF-8
  return value.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, encodeCharacter)
}

function encodeCharacter(character: string): string {
  const bytes = new TextEncoder().encode(character)
  return Array.from(bytes, (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
