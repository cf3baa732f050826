import { invalidInput } from '../errors/millrace-error.ts'
import { storableJson } from '../json/storable-json.ts'
import { assertHeaders, assertLabel } from '../schema/labels.ts'
import type { NewEvent } from './event.ts'

/** An index entry, a log line and a header hold this easily. */
const maxTypeLength = 256
/** Long enough for any id or path; keys are compared and indexed. */
const maxKeyLength = 512

/**
 * Checks an event before anything is stored and returns it as it will be stored.
 *
 * @param at names the event in messages: '' for a single one, `[3].` for the fourth of many
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP; `details.field` names the field
 */
export function validateEvent(event: NewEvent, at = ''): NewEvent {
  assertEvent(event, at)
  assertLabel(event.type, `${at}type`, maxTypeLength)
  if (event.key !== undefined && event.key !== null) assertLabel(event.key, `${at}key`, maxKeyLength)
  const dataText = storableJson(event.dataText, `${at}data`)
  if (event.headers !== undefined && event.headers !== null) assertHeaders(event.headers, `${at}headers`)
  return { ...event, dataText }
}

/**
 * The rule for what is to be an event at all.
 *
 * @throws INVALID_INPUT; `details.field` is `event`, or its place among many
 */
export function assertEvent(event: unknown, at: string): void {
  if (typeof event === 'object' && event !== null) return
  throw invalidInput(at === '' ? 'event' : at.slice(0, -1), 'must be an object with type and data')
}
