import { invalidInput } from '../errors/millrace-error.ts'
import { assertJsonText } from '../json/scan.ts'
import type { NewEvent } from './event.ts'

/** An index entry, a log line and a header hold this easily. */
const maxTypeLength = 256
/** Long enough for any id or path; keys are compared and indexed. */
const maxKeyLength = 512
const maxHeaders = 64
const maxHeaderCharacters = 8192

// oxlint-disable-next-line no-control-regex -- control characters are what this refuses
const controlCharacter = /[\u0000-\u001f\u007f]/

/**
 * Checks an event before anything is stored and returns it as it will be stored.
 *
 * @param at names the event in messages: '' for a single one, `[3].` for the fourth of many
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP; `details.field` names the field
 */
export function validateEvent(event: NewEvent, at = ''): NewEvent {
  assertLabel(event.type, `${at}type`, maxTypeLength)
  if (event.key !== undefined && event.key !== null) assertLabel(event.key, `${at}key`, maxKeyLength)
  assertJsonText(event.dataText, `${at}data`)
  if (!event.dataText.isWellFormed())
    throw invalidInput(`${at}data`, 'holds a lone surrogate that is not escaped')
  if (event.headers) assertHeaders(event.headers, `${at}headers`)
  return { ...event, dataText: trimJson(event.dataText) }
}

/** JSON's own white space only: String.trim would also take characters that JSON does not allow there. */
function trimJson(text: string): string {
  return text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '')
}

function assertLabel(value: unknown, field: string, maxLength: number): void {
  if (typeof value !== 'string') throw invalidInput(field, 'must be a string')
  if (value === '') throw invalidInput(field, 'must not be empty')
  if (value.length > maxLength) throw invalidInput(field, `is longer than ${maxLength} characters`)
  if (controlCharacter.test(value)) throw invalidInput(field, 'must not contain control characters')
  if (!value.isWellFormed()) throw invalidInput(field, 'must be well-formed Unicode')
}

function assertHeaders(headers: Record<string, string>, field: string): void {
  const entries = Object.entries(headers)
  if (entries.length > maxHeaders) throw invalidInput(field, `has more than ${maxHeaders} entries`)
  let characters = 0
  for (const [name, value] of entries) {
    assertLabel(name, `${field} name`, maxTypeLength)
    if (typeof value !== 'string') throw invalidInput(`${field}.${name}`, 'must be a string')
    if (!value.isWellFormed() || value.includes('\0')) {
      throw invalidInput(`${field}.${name}`, 'must be well-formed Unicode without NUL')
    }
    characters += name.length + value.length
  }
  if (characters > maxHeaderCharacters) {
    throw invalidInput(field, `hold more than ${maxHeaderCharacters} characters in all`)
  }
}
