import { invalidInput } from '../errors/millrace-error.ts'
import { assertJsonText } from './scan.ts'

/**
 * Checks a text of data, and returns it as it is stored: without the white space around it.
 *
 * @throws INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP naming the field
 */
export function storableJson(text: string, field: string): string {
  assertJsonText(text, field)
  if (!text.isWellFormed()) throw invalidInput(field, 'holds a lone surrogate that is not escaped')
  return trimJson(text)
}

/** JSON's own white space only: String.trim would also take characters that JSON does not allow there. */
function trimJson(text: string): string {
  let start = 0
  let end = text.length
  while (isSpace(text.charCodeAt(start))) start++
  while (isSpace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0a
}
