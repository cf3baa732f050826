import type { SendFailure } from './sender.ts'

/**
 * The headers that every sender adds. `identity`: an answer is only looked at, so a
 * compressed one would be a bomb for nothing.
 */
export function prepareHeaders(headers: Record<string, string>): Record<string, string> {
  return { 'user-agent': 'Millrace', ...headers, 'accept-encoding': 'identity' }
}

/** What a sender answers for a URL that the target guard refuses by its spelling. */
export function forbiddenTarget(reason: string): SendFailure {
  return { kind: 'error', reason: 'forbidden', message: `the URL ${reason}`, durationMs: 0 }
}
