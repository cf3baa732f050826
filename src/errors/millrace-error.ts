import { errorCodes, type ErrorCode } from './codes.ts'

const brand = Symbol.for('millrace.error')

/** A value that survives JSON.stringify unchanged. */
export type JsonSafe = string | number | boolean | null | JsonSafe[] | { [key: string]: JsonSafe }

/** What may come with a {@link MillraceError}. */
export interface MillraceErrorOptions {
  /** JSON-safe facts about the failure, shown to API callers. Never secrets or payloads. */
  details?: { [key: string]: JsonSafe }
  /** The error underneath, for logs only. */
  cause?: unknown
}

/** The one error class of Millrace. Branch on `code`, never on the message. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  /** Stable identifier, see docs/errors.md. */
  readonly code: ErrorCode
  /** The HTTP status the API answers with. */
  readonly status: number
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean
  readonly details: { [key: string]: JsonSafe }

  constructor(code: ErrorCode, message: string, options: MillraceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = errorCodes[code].status
    this.retryable = errorCodes[code].retryable
    this.details = options.details ?? {}
    Object.defineProperty(this, brand, { value: true })
  }
}

/** Whether a value is a {@link MillraceError}, also one of another copy of the package. */
export function isMillraceError(value: unknown): value is MillraceError {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
}

/** An INVALID_INPUT error that names the field at fault. */
export function invalidInput(field: string, problem: string): MillraceError {
  return new MillraceError('INVALID_INPUT', `${field} ${problem}`, { details: { field } })
}
