import { MillraceError } from '../errors/millrace-error.ts'

/**
 * How deep JSON may nest. Postgres gives up at some thousands of levels, depending on its stack, and
 * so do many receivers' parsers; 512 is far beyond real data and safe on every driver.
 */
export const maxJsonDepth = 512

const quote = 0x22
const backslash = 0x5c
const [openBrace, openBracket] = [0x7b, 0x5b]
const [closeBrace, closeBracket] = [0x7d, 0x5d]

/**
 * Checks that a text is exactly one JSON document (RFC 8259) and not nested deeper than
 * {@link maxJsonDepth}. The text itself is what gets stored: it is parsed here only to be judged.
 *
 * @throws INVALID_JSON, JSON_TOO_DEEP; `details.field` is `field`
 */
export function assertJsonText(text: string, field: string): void {
  parseJson(text, field)
}

/**
 * As {@link assertJsonText}, returning the parsed value.
 *
 * @param envelopeLevels how many levels the text may have on top, for what is wrapped around the data
 * @throws INVALID_JSON, JSON_TOO_DEEP
 */
export function parseJson(text: string, field: string, envelopeLevels = 0): unknown {
  const maxDepth = maxJsonDepth + envelopeLevels
  // what is shorter has not so many brackets
  if (text.length > maxDepth && depthOf(text) > maxDepth) {
    throw new MillraceError('JSON_TOO_DEEP', `${field} is nested deeper than ${maxDepth} levels`, {
      details: { field },
    })
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    const problem = text.trim() === '' ? 'is empty' : `is not valid JSON: ${(error as Error).message}`
    throw new MillraceError('INVALID_JSON', `${field} ${problem}`, { details: { field } })
  }
}

/** The deepest nesting of a text that may or may not be JSON; brackets inside strings do not count. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at) - 1
    else if (code === openBrace || code === openBracket) deepest = Math.max(deepest, ++depth)
    else if (code === closeBrace || code === closeBracket) depth--
  }
  return deepest
}

/** The index after the closing quote of the string that begins at `start` (or the end of the text). */
export function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length) {
    const next = text.indexOf('"', at)
    if (next < 0) return text.length
    let slashes = 0
    while (text.charCodeAt(next - 1 - slashes) === backslash) slashes++
    // a quote behind an odd number of backslashes is an escaped one
    if (slashes % 2 === 0) return next + 1
    at = next + 1
  }
  return text.length
}

/** The index after the value that begins at `start`, in a text known to be valid JSON. */
export function endOfValue(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = endOfString(text, at) - 1
    } else if (code === openBrace || code === openBracket) {
      depth++
      continue
    } else if (code === closeBrace || code === closeBracket) {
      // a scalar ends before the bracket that closes what it stands in
      if (depth === 0) return trimEnd(text, start, at)
      depth--
    } else if (depth > 0 || code !== 0x2c) {
      continue
    } else {
      return trimEnd(text, start, at)
    }
    if (depth === 0) return at + 1
  }
  return trimEnd(text, start, text.length)
}

function trimEnd(text: string, start: number, end: number): number {
  let at = end
  while (at > start && isSpace(text.charCodeAt(at - 1))) at--
  return at
}

/** The index of the first character at or after `at` that is not JSON white space. */
export function skipSpace(text: string, at: number): number {
  let index = at
  while (index < text.length && isSpace(text.charCodeAt(index))) index++
  return index
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
