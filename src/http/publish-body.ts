import { invalidInput } from '../errors/millrace-error.ts'
import { parseJson } from '../json/scan.ts'
import { arraySlices, objectSlices } from '../json/slices.ts'
import type { NewEvent } from '../streams/event.ts'
import { isLongerThan, isObject, tooLarge, type BodyText } from './body.ts'

const knownFields = new Set(['type', 'data', 'key', 'headers'])

/** The levels that an event object, and the array around it, put on top of the data's own. */
const envelopeLevels = 2

/** What {@link parsePublishBody} returns. */
export interface PublishBody {
  events: NewEvent[]
  /** One event object was sent, not a list: it is answered with `offset`. */
  single: boolean
}

/**
 * The events of a publish request: one object, an array of them, or NDJSON with one a line (blank
 * lines do not count). The data is cut out of the text, never parsed and printed again (S9).
 *
 * @param maxDataBytes the most the data of one event may have
 * @throws INVALID_JSON, JSON_TOO_DEEP, INVALID_INPUT, BODY_TOO_LARGE; `details.field` names the field
 */
export function parsePublishBody(body: BodyText, maxDataBytes: number): PublishBody {
  if (body.mediaType === 'application/x-ndjson') {
    const lines = body.text.split('\n').filter((line) => line.trim() !== '')
    for (const [index, line] of lines.entries()) assertEvent(parseJson(line, `[${index}]`, 1), `[${index}]`)
    return { events: eventList(lines, maxDataBytes), single: false }
  }
  const value = parseJson(body.text, 'body', envelopeLevels)
  if (!Array.isArray(value)) {
    assertEvent(value, 'body')
    return { events: [eventOf(body.text, '', maxDataBytes)], single: true }
  }
  for (const [index, element] of value.entries()) assertEvent(element, `[${index}]`)
  return { events: eventList(arraySlices(body.text), maxDataBytes), single: false }
}

function assertEvent(value: unknown, field: string): void {
  if (!isObject(value)) throw invalidInput(field, 'must be an event: a JSON object with type and data')
}

function eventList(texts: string[], maxDataBytes: number): NewEvent[] {
  if (texts.length === 0) throw invalidInput('body', 'must hold at least one event')
  return texts.map((text, index) => eventOf(text, `[${index}].`, maxDataBytes))
}

/** @param at names the event in messages: '' for a single one, `[3].` for the fourth of many */
function eventOf(text: string, at: string, maxDataBytes: number): NewEvent {
  const members = objectSlices(text, at === '' ? 'body' : at.slice(0, -1))
  for (const name of members.keys()) {
    if (!knownFields.has(name)) throw invalidInput(`${at}${name}`, 'is not a known field')
  }
  const dataText = members.get('data')
  if (dataText === undefined) throw invalidInput(`${at}data`, 'is missing')
  if (isLongerThan(dataText, maxDataBytes)) throw tooLarge(`${at}data`, maxDataBytes)
  const type = members.get('type')
  if (type === undefined) throw invalidInput(`${at}type`, 'is missing')
  return {
    // what it must be is checked by validateEvent, for callers in the process too
    type: JSON.parse(type) as string,
    dataText,
    key: JSON.parse(members.get('key') ?? 'null') as string | null,
    headers: headersOf(members.get('headers') ?? 'null', `${at}headers`),
  }
}

/**
 * Headers as sent, none of them twice; what they may be is checked where they are stored.
 *
 * @throws INVALID_INPUT
 */
export function headersOf(text: string, field: string): Record<string, string> | null {
  const value: unknown = JSON.parse(text)
  if (value === null) return null
  if (!isObject(value)) throw invalidInput(field, 'must be a JSON object of strings')
  objectSlices(text, field)
  return value as Record<string, string>
}
