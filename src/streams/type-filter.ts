import { invalidInput } from '../errors/millrace-error.ts'

/** A filter with more entries than this is better served by a coarser pattern. */
const maxTypes = 100

/** A type filter, in the two forms SQL wants; both null: everything. */
export interface SplitTypes {
  exact: string[] | null
  /** LIKE patterns. */
  patterns: string[] | null
}

/**
 * Splits a type filter into exact names and LIKE patterns: `order.created` matches itself, `order.*`
 * everything that begins with `order.`, and `*` everything.
 *
 * @throws INVALID_INPUT when an entry is empty, has a `*` elsewhere than at its end, or there are over 100
 */
export function splitTypes(types: readonly string[] | undefined | null): SplitTypes {
  if (types === undefined || types === null) return { exact: null, patterns: null }
  assertTypes(types)
  if (types.length === 0 || types.includes('*')) return { exact: null, patterns: null }
  const wild = types.filter((type) => type.endsWith('*'))
  return {
    exact: types.filter((type) => !type.endsWith('*')),
    patterns: wild.map((type) => `${type.slice(0, -1).replace(/[\\%_]/g, '\\$&')}%`),
  }
}

/**
 * Checks a type filter.
 *
 * @throws INVALID_INPUT
 */
export function assertTypes(types: readonly string[]): void {
  if (!Array.isArray(types)) throw invalidInput('types', 'must be an array of strings')
  if (types.length > maxTypes) throw invalidInput('types', `has more than ${maxTypes} entries`)
  for (const type of types) {
    if (typeof type !== 'string' || type === '') throw invalidInput('types', 'must hold non-empty strings')
    if (type.slice(0, -1).includes('*'))
      throw invalidInput('types', 'may have "*" only at the end of an entry')
    if (type.length > 256) throw invalidInput('types', 'has an entry longer than 256 characters')
  }
}

/** The same filter as a predicate, for events that are already read. */
export function typeMatcher(types: readonly string[] | undefined | null): (type: string) => boolean {
  if (types === undefined || types === null || types.length === 0 || types.includes('*')) return () => true
  const exact = new Set(types.filter((type) => !type.endsWith('*')))
  const prefixes = types.filter((type) => type.endsWith('*')).map((type) => type.slice(0, -1))
  return (type) => exact.has(type) || prefixes.some((prefix) => type.startsWith(prefix))
}
