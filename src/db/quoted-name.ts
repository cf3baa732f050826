/** A name as a quoted identifier, for text that is not made by Drizzle. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
