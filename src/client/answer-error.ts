import { errorCodes, type ErrorCode } from '../errors/codes.ts'
import { MillraceError, type JsonSafe } from '../errors/millrace-error.ts'

/** An answer whose body has been read. */
export interface Answer {
  status: number
  headers: Headers
  text: string
}

/** Beyond this, a page of HTML from some proxy only buries the message. */
const quotedCharacters = 200

/** Statuses with which proxies say that the server behind them is away for the moment. */
const gatewayStatuses = new Set([502, 503, 504])

/** The members of a problem document that are not facts of the error. */
const standardMembers = new Set(['type', 'title', 'status', 'detail', 'code'])

/**
 * What an answer that is no success says, as an error: the server's code, words and details. A code
 * that this version does not know becomes INTERNAL with the server's text.
 */
export function errorOfAnswer(answer: Answer): MillraceError {
  const problem = problemOf(answer)
  if (problem === undefined) return foreignError(answer)
  const { code, detail, title } = problem
  const words = typeof detail === 'string' ? detail : typeof title === 'string' ? title : String(code)
  const details = Object.fromEntries(Object.entries(problem).filter(([name]) => !standardMembers.has(name)))
  if (isErrorCode(code)) return new MillraceError(code, words, { details })
  return new MillraceError('INTERNAL', `${String(code)}: ${words}`, {
    details: { ...details, code: String(code), status: answer.status },
  })
}

function problemOf({ headers, text }: Answer): { [key: string]: JsonSafe } | undefined {
  if (!(headers.get('content-type') ?? '').includes('json')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    const isProblem = typeof value === 'object' && value !== null && 'code' in value
    return isProblem ? (value as { [key: string]: JsonSafe }) : undefined
  } catch {
    return undefined
  }
}

/** Somebody answers, but not Millrace: a proxy, or another program on the port. */
function foreignError({ status, text }: Answer): MillraceError {
  const code = gatewayStatuses.has(status) ? 'SERVER_UNREACHABLE' : 'INTERNAL'
  const quoted = text.replace(/\s+/g, ' ').trim().slice(0, quotedCharacters)
  const words = quoted === '' ? 'nothing' : `"${quoted}"`
  return new MillraceError(code, `got status ${status} and ${words}, which is no answer of Millrace`, {
    details: { status },
  })
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorCodes, code)
}
