const string = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y // oxlint-disable-line no-control-regex -- JSON forbids them there
const stringSoFar = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*/y // oxlint-disable-line no-control-regex -- as above
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const space = /[ \t\r\n]*/y

/** Where a text stops being JSON, and what should have been there. */
export interface JsonProblem {
  /** From 0. */
  index: number
  expected: string
}

/** The first place at which a text is no JSON; null when it is. JSON.parse tells it for some errors only. */
export function findJsonProblem(text: string): JsonProblem | null {
  const scanner = { text, at: 0 }
  const problem = value(scanner)
  if (problem !== null) return problem
  skip(scanner, space)
  return scanner.at === text.length ? null : expect(scanner, 'the end')
}

/** For a message: what was expected where, and what is there instead. */
export function describeJsonProblem(text: string, { index, expected }: JsonProblem): string {
  const before = text.slice(0, index).split('\n')
  const column = `column ${(before.at(-1) ?? '').length + 1}`
  const where = text.trimEnd().includes('\n') ? `line ${before.length}, ${column}` : column
  const [character] = text.slice(index, index + 2)
  const found = character === undefined ? 'the text ends' : `found ${JSON.stringify(character)}`
  return `at ${where}: expected ${expected}, ${found}`
}

interface Scanner {
  text: string
  at: number
}

function skip(scanner: Scanner, pattern: RegExp): boolean {
  pattern.lastIndex = scanner.at
  const length = pattern.exec(scanner.text)?.[0].length ?? -1
  if (length > 0) scanner.at += length
  return length >= 0
}

function expect({ at }: Scanner, expected: string): JsonProblem {
  return { index: at, expected }
}

function value(scanner: Scanner): JsonProblem | null {
  skip(scanner, space)
  const first = scanner.text[scanner.at]
  if (first === '{') return members(scanner, '}', member)
  if (first === '[') return members(scanner, ']', value)
  if (first === '"') return text(scanner)
  return skip(scanner, scalar) ? null : expect(scanner, 'a value')
}

function text(scanner: Scanner): JsonProblem | null {
  if (skip(scanner, string)) return null
  skip(scanner, stringSoFar)
  const next = scanner.text[scanner.at]
  if (next === undefined) return expect(scanner, 'a closing quote')
  return expect(scanner, next === '\\' ? 'a valid escape' : 'an escape for a control character')
}

function member(scanner: Scanner): JsonProblem | null {
  skip(scanner, space)
  if (scanner.text[scanner.at] !== '"') return expect(scanner, 'a name in double quotes')
  const problem = text(scanner)
  if (problem !== null) return problem
  skip(scanner, space)
  if (scanner.text[scanner.at] !== ':') return expect(scanner, '":"')
  scanner.at += 1
  return value(scanner)
}

function members(
  scanner: Scanner,
  close: '}' | ']',
  one: (scanner: Scanner) => JsonProblem | null,
): JsonProblem | null {
  scanner.at += 1
  skip(scanner, space)
  if (scanner.text[scanner.at] === close) {
    scanner.at += 1
    return null
  }
  for (;;) {
    const problem = one(scanner)
    if (problem !== null) return problem
    skip(scanner, space)
    const next = scanner.text[scanner.at]
    if (next !== ',' && next !== close) return expect(scanner, `"," or "${close}"`)
    scanner.at += 1
    if (next === close) return null
  }
}
