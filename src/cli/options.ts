import { InvalidArgumentError } from 'commander'

/** Parses an option that is a whole number within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Parses an option that is a number within bounds. */
export function decimal(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a number from ${least} to ${most}.`)
  }
}

/** Parses an option that is a whole number within bounds, or `none`; commander takes a null for nothing. */
export function numberOrNone(least: number, most: number): (text: string) => number | 'none' {
  const number = wholeNumber(least, most)
  return (text) => (text === 'none' ? text : number(text))
}

/** Parses a list with commas; the option may also be repeated. */
export function list(text: string, previous: string[] | undefined): string[] {
  const values = text.split(',').map((value) => value.trim())
  if (values.includes('')) throw new InvalidArgumentError('It has an empty entry.')
  return [...(previous ?? []), ...values]
}

/** Parses a repeatable `name=value`. */
export function pair(text: string, previous: Record<string, string> | undefined): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must be name=value.')
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) }
}

/** Parses where to begin: `start`, `now` or an offset. */
export function position(text: string): 'start' | 'now' | number {
  if (text === 'start' || text === 'now') return text
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new InvalidArgumentError('It must be start, now or an offset.')
}

/** Parses one of a few words. */
export function oneOf<Choice extends string>(...choices: readonly Choice[]): (text: string) => Choice {
  return (text) => {
    const found = choices.find((choice) => choice === text)
    if (found !== undefined) return found
    throw new InvalidArgumentError(`It must be ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}.`)
  }
}
