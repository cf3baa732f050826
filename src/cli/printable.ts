/** C0 and C1 controls and DEL, which terminals obey; and what reverses the direction of text. */
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** A text of someone else's, safe to show on a terminal: what is not to be seen is escaped as JSON does. */
export function printable(text: string): string {
  return text.replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Valid JSON in one line, otherwise as it is: raw line breaks only ever stand between its tokens. */
export function jsonLine(text: string): string {
  return text.replace(/[\r\n\t]+ */g, ' ')
}

/** Valid JSON, indented; the tokens themselves stay as they are. */
export function indentJson(text: string): string {
  let depth = 0
  const broken = (): string => `\n${'  '.repeat(depth)}`
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[ \t\r\n]+/g, (token): string => {
    if (token[0] === '"') return token
    if (token === '{' || token === '[') {
      depth += 1
      return token + broken()
    }
    if (token === '}' || token === ']') {
      depth -= 1
      return broken() + token
    }
    if (token === ',') return token + broken()
    if (token === ':') return ': '
    return token.replace(/\s+/g, '')
  })
}

/** The time of day in UTC, with milliseconds. */
export function timeOfDay(date: Date): string {
  return date.toISOString().slice(11, 23)
}
