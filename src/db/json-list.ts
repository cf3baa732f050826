import { sql, type SQL } from 'drizzle-orm'

/** Stands between JSON texts, and cannot be in one: JSON escapes control characters. */
const separator = '\u001E'
/** How Postgres splits at it; what is empty between two of them is null. */
const splitArguments = `E'\\x1E', ''`

/**
 * JSON texts as one text parameter, for {@link splitJsonList}. In an array's literal every quote has to be escaped,
 * and found again: of what a publish of a thousand costs its process, that was a quarter.
 */
export function jsonList(texts: readonly (string | null)[]): string {
  // piece by piece it is copied once, when it is sent
  let list = texts[0] ?? ''
  for (let index = 1; index < texts.length; index++) list += separator + (texts[index] ?? '')
  return list
}

/** The expression that makes a `text[]` of a parameter. A list of one null makes an empty array. */
export function splitJsonList(parameter: string): string {
  return `string_to_array(${parameter}::text, ${splitArguments})`
}

/** A parameter that Postgres reads as `text[]`: as textArray, for JSON texts. */
export function jsonArray(texts: readonly (string | null)[]): SQL {
  return sql`string_to_array(${jsonList(texts)}::text, ${sql.raw(splitArguments)})`
}
