import { sql, type SQL } from 'drizzle-orm'

/** A timestamptz as ISO 8601 text in UTC with milliseconds, alike on every driver; null stays null. */
export function isoText(value: SQL): SQL {
  return sql`to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}
