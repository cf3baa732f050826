import { invalidInput } from '../errors/millrace-error.ts'

/**
 * The query parameters of a request. One that the address does not know is refused by name, so that a
 * typo (`?afer=5`) does not read from the start in silence.
 *
 * @throws INVALID_INPUT
 */
export function queryOf(request: Request, known: readonly string[]): URLSearchParams {
  const query = new URL(request.url).searchParams
  for (const name of query.keys()) {
    if (!known.includes(name)) throw invalidInput(name, 'is not a parameter of this address')
  }
  return query
}

/**
 * A parameter that may come once; absent: undefined.
 *
 * @throws INVALID_INPUT when it comes more than once
 */
export function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  if (more.length > 0) throw invalidInput(name, 'must come only once')
  return value
}

/**
 * A parameter that is a whole number; absent: undefined.
 *
 * @throws INVALID_INPUT
 */
export function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = single(query, name)
  if (text === undefined) return undefined
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw invalidInput(name, 'must be a whole number')
  return value
}

/**
 * A parameter that is a list: it may come more than once, and each may hold several values with commas
 * between them; absent: undefined.
 *
 * @throws INVALID_INPUT when an entry is empty or holds a control character
 */
export function list(query: URLSearchParams, name: string): string[] | undefined {
  if (!query.has(name)) return undefined
  const values = query.getAll(name).flatMap((value) => value.split(','))
  for (const value of values) {
    if (value === '') throw invalidInput(name, 'has an empty entry')
    // oxlint-disable-next-line no-control-regex -- control characters are what this refuses
    if (/[\u0000-\u001f\u007f]/.test(value)) throw invalidInput(name, 'must not contain control characters')
  }
  return values
}

/**
 * The `limit` of a page, 1 to 500, by default 100.
 *
 * @throws INVALID_INPUT
 */
export function pageLimit(query: URLSearchParams): number {
  const limit = wholeNumber(query, 'limit') ?? 100
  if (limit < 1 || limit > 500) throw invalidInput('limit', 'must be a whole number from 1 to 500')
  return limit
}
