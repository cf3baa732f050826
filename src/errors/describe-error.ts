import { isMillraceError } from './millrace-error.ts'

/** For what cannot even be asked. */
const nameless = 'something was thrown that cannot be described'

/**
 * In a line what an error says, or whatever else was thrown. Never throws itself, which takes care: `String()` does
 * for an object without a prototype, and anything does for a getter or a proxy that throws.
 *
 * @param withName begins with the error's name, as `TypeError: …`
 */
export function describeError(error: unknown, { withName = false } = {}): string {
  return describeSafely(() => {
    if (isMillraceError(error)) return `${error.code}: ${error.message}`
    if (!(error instanceof Error)) return String(error)
    return withName ? `${error.name}: ${error.message}` : String(error.message || error.name)
  })
}

/** What `describe` returns, and where it throws words that say so. */
export function describeSafely(describe: () => string): string {
  try {
    return describe()
  } catch {
    return nameless
  }
}

/**
 * What was thrown, for a log line: a text instead where a log that looks at it as at any error would itself throw.
 */
export function loggable(error: unknown): unknown {
  try {
    for (let at: unknown = error, depth = 0; typeof at === 'object' && at !== null && depth < 8; depth++) {
      const { name, message, stack, code, cause } = at as Record<string, unknown>
      String([name, message, stack, code])
      at = cause
    }
    return error
  } catch {
    return new Error(describeError(error))
  }
}
