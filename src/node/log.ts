import pino from 'pino'
import { isMillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'

/** JSON lines on stdout, for a server whose log is collected. `MILLRACE_LOG_LEVEL` defaults to `info`. */
export function createJsonLog(level: string = process.env.MILLRACE_LOG_LEVEL ?? 'info'): Log {
  return pino({ level, base: { service: 'millrace' }, serializers: { err: describeError } })
}

/** For a person at a terminal: warnings and errors, a line each. */
export function createTerminalLog(write: (line: string) => void = console.error): Log {
  const say = (facts: object, message: string): void => write(`! ${message}${reason(facts)}`)
  return { debug() {}, info() {}, warn: say, error: say }
}

/** An error without its parameters and payloads: code, message and stack. */
function describeError(error: unknown): object {
  if (isMillraceError(error)) return { code: error.code, message: error.message, details: error.details }
  return error instanceof Error ? { message: error.message, stack: error.stack } : { message: String(error) }
}

function reason(facts: object): string {
  const { err, reason: words } = facts as { err?: unknown; reason?: unknown }
  if (err instanceof Error) return `: ${err.message}`
  return typeof words === 'string' ? `: ${words}` : ''
}
