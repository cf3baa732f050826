import { isMillraceError, type MillraceError } from '../errors/millrace-error.ts'
import { findServer, isLoopback } from './connection.ts'
import type { Io } from './io.ts'
import { printable } from './printable.ts'

/** A failure as one line for the person at the terminal, with what to do about it where that is known. */
export function explainError(error: unknown, io: Io): string {
  if (!isMillraceError(error)) return printable(error instanceof Error ? error.message : String(error))
  switch (error.code) {
    case 'SERVER_UNREACHABLE':
      return printable(unreachable(error, io))
    case 'UNAUTHORIZED':
      return unauthorized(io)
    case 'ABORTED':
      return 'stopped'
    case 'TARGET_FORBIDDEN':
      return `${printable(error.message)} (TARGET_FORBIDDEN; a server run with MILLRACE_ALLOW_INSECURE_TARGETS=1 takes local and http addresses)`
    default:
      return `${printable(error.message)} (${error.code})`
  }
}

/** What a server that is not there, or just went, looks like: the message has said it. */
const plainReasons = new Set(['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET'])

function unreachable(error: MillraceError, io: Io): string {
  const { url } = findServer(io.env)
  const reason = reasonOf(error.cause)
  const advice = isLoopback(url) ? 'is `npm start` running?' : 'is MILLRACE_URL right?'
  return `${error.message}${reason === '' || plainReasons.has(reason) ? '' : ` (${reason})`} — ${advice}`
}

/** The system's word for what went wrong (ENOTFOUND), which fetch hides below its own. */
function reasonOf(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return ''
  const { code, cause: inner } = cause as { code?: unknown; cause?: unknown }
  return typeof code === 'string' ? code : reasonOf(inner)
}

function unauthorized(io: Io): string {
  const { url, key } = findServer(io.env)
  if (key !== null) return `the server at ${url} does not take the key from ${key.source}`
  return `the server at ${url} wants a key: set MILLRACE_KEY${
    isLoopback(url) ? ', or run this in the folder where the server was started' : ''
  }`
}
