/** An int8 of a raw row: text on most drivers, a number on PGlite. */
export function toNumber(value: unknown): number {
  return Number(value)
}

/** As {@link toNumber}, where null stays null. */
export function toNumberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}

/** An int8[] of a raw row: an array on most drivers, an array literal where a driver leaves it as text. */
export function toNumbers(value: unknown): number[] {
  if (Array.isArray(value)) return value.map(Number)
  const text = String(value).slice(1, -1)
  return text === '' ? [] : text.split(',').map(Number)
}

/** A timestamptz of a raw row: a Date on some drivers, Postgres's text on others. */
export function toDate(value: unknown): Date {
  return value instanceof Date ? value : new Date(String(value).replace(/([+-]\d\d)$/, '$1:00'))
}

/** As {@link toDate}, where null stays null. */
export function toDateOrNull(value: unknown): Date | null {
  return value === null || value === undefined ? null : toDate(value)
}
