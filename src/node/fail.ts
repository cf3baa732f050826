import { isMillraceError } from '../errors/millrace-error.ts'

/** sysexits' EX_CONFIG: a restart changes nothing, so `RestartPreventExitStatus=78` in a systemd unit. */
export const wrongEnvironmentExitCode = 78

/** With what a process ends: 78 when the database belongs to another environment (W7), else 1. */
export function exitCodeOf(error: unknown): number {
  return isMillraceError(error) && error.code === 'WRONG_ENVIRONMENT' ? wrongEnvironmentExitCode : 1
}

/** The one line for a failure that ends the process. */
export function failureLine(error: unknown): string {
  if (isMillraceError(error)) return `millrace: ${error.message} (${error.code})`
  return `millrace: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
