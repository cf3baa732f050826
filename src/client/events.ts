import { invalidInput } from '../errors/millrace-error.ts'
import { jsonTextOf } from '../json/json-text-of.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { Answer } from './answer-error.ts'
import { dataText } from './data.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type {
  EventPage,
  NewEvent,
  PublishedMany,
  PublishedOne,
  PublishOptions,
  ReadEvent,
  ReadOptions,
} from './types.ts'

/** `POST` with the events in one of their three forms. */
export async function postEvents(
  send: Send,
  stream: string,
  body: { text: string; contentType?: string },
  options: PublishOptions,
): Promise<Answer> {
  const { idempotencyKey, signal } = options
  return send({
    method: 'POST',
    path: `/v1/streams/${segment('stream', stream)}/events`,
    body: body.text,
    ...(body.contentType === undefined ? {} : { contentType: body.contentType }),
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': headerSafe(idempotencyKey) },
    signal,
  })
}

/** The answer to one event. */
export function toPublishedOne(answer: Answer): PublishedOne {
  return { offset: jsonOf<{ offset: number }>(answer).offset, replayed: isReplay(answer) }
}

/** The answer to several events. */
export function toPublishedMany(answer: Answer): PublishedMany {
  return { offsets: jsonOf<{ offsets: number[] }>(answer).offsets, replayed: isReplay(answer) }
}

function isReplay(answer: Answer): boolean {
  return answer.headers.get('idempotent-replayed') === 'true'
}

function headerSafe(key: string): string {
  if (/^[\x20-\x7e]{1,256}$/.test(key)) return key
  throw invalidInput('idempotencyKey', 'must be 1 to 256 printable ASCII characters')
}

/**
 * An event as the text of a request; `dataText` goes in as it is.
 *
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP
 */
export function eventText(event: NewEvent, at = ''): string {
  const { type, key = null, headers = null } = event
  const members = [`"type":${jsonTextOf(type, `${at}type`)}`, `"data":${dataText(event, at)}`]
  if (key !== null) members.push(`"key":${jsonTextOf(key, `${at}key`)}`)
  if (headers !== null) members.push(`"headers":${jsonTextOf(headers, `${at}headers`)}`)
  return `{${members.join(',')}}`
}

/** `GET` a page of events at a path. */
export async function getEvents<Events extends object>(
  send: Send,
  path: string,
  options: ReadOptions,
): Promise<EventPage<Events>> {
  const { after, limit, types, waitSeconds, signal } = options
  for (const type of types ?? []) {
    if (type === '' || type.includes(','))
      throw invalidInput('types', 'must hold no empty entry and no comma')
  }
  const answer = await send({
    path,
    query: { after, limit, type: types?.join(','), wait: waitSeconds },
    signal,
    waitMs: (waitSeconds ?? 0) * 1000,
  })
  return toPage(answer)
}

interface RawPage {
  events: {
    offset: number
    type: string
    key: string | null
    data: unknown
    headers: Record<string, string> | null
    publishedAt: string
  }[]
  next: number
  horizon: number | null
}

function toPage<Events extends object>(answer: Answer): EventPage<Events> {
  const page = jsonOf<RawPage>(answer)
  const slices = arraySlices(objectSlices(answer.text, 'answer').get('events') ?? '[]')
  const events = page.events.map((event, index) => ({
    ...event,
    dataText: objectSlices(slices[index] ?? '{}', 'answer').get('data') ?? 'null',
    publishedAt: new Date(event.publishedAt),
  }))
  return { events: events as ReadEvent<Events>[], next: page.next, horizon: page.horizon }
}
