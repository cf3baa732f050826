import { isMillraceError } from '../errors/millrace-error.ts'

/** The one line for a failure that ends the process. */
export function failureLine(error: unknown): string {
  if (isMillraceError(error)) return `millrace: ${error.message} (${error.code})`
  return `millrace: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
