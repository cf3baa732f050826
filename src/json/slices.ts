import { invalidInput } from '../errors/millrace-error.ts'
import { endOfString, endOfValue, skipSpace } from './scan.ts'

/**
 * The members of a JSON object as slices of its text, so that a value can be stored byte for byte as
 * it came. `text` must be valid JSON and an object (see parseJson).
 *
 * @throws INVALID_INPUT when a name of the object comes twice: parsers disagree on which one counts
 */
export function objectSlices(text: string, field: string): Map<string, string> {
  const members = new Map<string, string>()
  let at = skipSpace(text, skipSpace(text, 0) + 1)
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at)
    const name = JSON.parse(text.slice(at, nameEnd)) as string
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const valueEnd = endOfValue(text, valueStart)
    if (members.has(name)) throw invalidInput(field, `has the member ${JSON.stringify(name)} twice`)
    members.set(name, text.slice(valueStart, valueEnd))
    at = skipSpace(text, valueEnd)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return members
}

/** The elements of a JSON array as slices of its text. `text` must be valid JSON and an array. */
export function arraySlices(text: string): string[] {
  const elements: string[] = []
  let at = skipSpace(text, skipSpace(text, 0) + 1)
  while (at < text.length && text[at] !== ']') {
    const end = endOfValue(text, at)
    elements.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return elements
}
