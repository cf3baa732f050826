import { sql, type SQL } from 'drizzle-orm'

/** A `text[]` as one text parameter, alike on every driver: `{"a","b",NULL}`. */
export function arrayLiteral(values: readonly (string | null)[]): string {
  return `{${values.map(quoteElement).join(',')}}`
}

function quoteElement(value: string | null): string {
  return value === null ? 'NULL' : `"${value.replace(/[\\"]/g, '\\$&')}"`
}

/** A parameter that Postgres reads as `text[]`; null stays null. */
export function textArray(values: readonly (string | null)[] | null): SQL {
  return sql`${values === null ? null : arrayLiteral(values)}::text::text[]`
}

/** A parameter that Postgres reads as `bigint[]`. */
export function bigintArray(values: readonly (number | null)[]): SQL {
  return sql`${`{${values.map((value) => value ?? 'NULL').join(',')}}`}::text::bigint[]`
}
