import pino from 'pino'
import { describeError, loggable } from '../errors/describe-error.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Log } from '../ports.ts'

/** Options of {@link createJsonLog}. */
export interface JsonLogOptions {
  /** `debug`, `info`, `warn` or `error`. Default: MILLRACE_LOG_LEVEL, or `info`. */
  level?: string
  /** Default: stdout. */
  to?: { write(line: string): void }
}

const levels = ['debug', 'info', 'warn', 'error']

/**
 * JSON lines, for a server whose log is collected.
 *
 * @throws INVALID_SETTING for a level that there is not
 */
export function createJsonLog(options: JsonLogOptions = {}): Log {
  const level = (options.level ?? process.env.MILLRACE_LOG_LEVEL)?.trim() || 'info'
  if (!levels.includes(level)) {
    const details = { setting: 'MILLRACE_LOG_LEVEL' }
    throw new MillraceError('INVALID_SETTING', `MILLRACE_LOG_LEVEL must be one of: ${levels.join(', ')}`, {
      details,
    })
  }
  const how = { level, base: { service: 'millrace' }, serializers: { err: serializeError } }
  return options.to === undefined ? pino(how) : pino(how, options.to)
}

/** For a person at a terminal: warnings and errors, a line each. */
export function createTerminalLog(write: (line: string) => void = console.error): Log {
  const say = (facts: object, message: string): void => write(`! ${message}${reason(facts)}`)
  return { debug() {}, info() {}, warn: say, error: say }
}

/** An error without its parameters and payloads: code, message and stack. */
function serializeError(thrown: unknown): object {
  const error = loggable(thrown)
  if (isMillraceError(error)) return { code: error.code, message: error.message, details: error.details }
  const message = describeError(error)
  return error instanceof Error ? { message, stack: error.stack } : { message }
}

function reason(facts: object): string {
  const { err, reason: words } = facts as { err?: unknown; reason?: unknown }
  if (err !== undefined) return `: ${describeError(err)}`
  return typeof words === 'string' ? `: ${words}` : ''
}
