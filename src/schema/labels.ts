import { invalidInput } from '../errors/millrace-error.ts'

const maxHeaders = 64
const maxHeaderNameLength = 256
const maxHeaderCharacters = 8192

// oxlint-disable-next-line no-control-regex -- control characters are what this refuses
const controlCharacter = /[\u0000-\u001f\u007f]/

/**
 * The rule for short texts that are compared and logged (types, keys): 1 to `maxLength` characters, no
 * control characters, well-formed Unicode.
 *
 * @throws INVALID_INPUT; `details.field` is `field`
 */
export function assertLabel(value: unknown, field: string, maxLength: number): void {
  if (typeof value !== 'string') throw invalidInput(field, 'must be a string')
  if (value === '') throw invalidInput(field, 'must not be empty')
  if (value.length > maxLength) throw invalidInput(field, `is longer than ${maxLength} characters`)
  if (controlCharacter.test(value)) throw invalidInput(field, 'must not contain control characters')
  if (!value.isWellFormed()) throw invalidInput(field, 'must be well-formed Unicode')
}

/**
 * The rule for names of environments, which are compared, printed and passed as flags: 1 to 64 letters, digits,
 * `.`, `_` and `-`, not beginning with `-`.
 */
export function isEnvironmentName(name: string): boolean {
  return /^[A-Za-z0-9._][A-Za-z0-9._-]{0,63}$/.test(name)
}

/** What {@link isEnvironmentName} wants, to follow the name of the field. */
export const environmentNameRule = 'must be 1 to 64 letters, digits, ".", "_" or "-", not beginning with "-"'

/**
 * The rule for headers: a plain object of strings, at most 64 of them, 8 KiB in all.
 *
 * @throws INVALID_INPUT; `details.field` names the header
 */
export function assertHeaders(headers: unknown, field: string): asserts headers is Record<string, string> {
  if (!isPlainObject(headers)) throw invalidInput(field, 'must be a plain object of strings')
  const entries = Object.entries(headers)
  if (entries.length > maxHeaders) throw invalidInput(field, `has more than ${maxHeaders} entries`)
  let characters = 0
  for (const [name, value] of entries) {
    assertLabel(name, `${field} name`, maxHeaderNameLength)
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

/** Of a Map, a `Headers` or an array JSON would keep something else than was given. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // not compared with ours: it may come from another realm
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
