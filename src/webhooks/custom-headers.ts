import { invalidInput } from '../errors/millrace-error.ts'

/** More would crowd out the receiver's own limit on all headers, commonly 8 KiB. */
const limits = { count: 32, bytes: 4096 } as const

/** A header name. Source: RFC 9110, section 5.6.2 (token). */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Printable ASCII: what every HTTP stack passes on unchanged, tabs and other bytes it may not. */
const printable = /^[\x20-\x7e]*$/

/** Headers that say who is asked, how long the message is, or how the connection works. */
const forbidden = new Set([
  'host',
  'content-length',
  'content-type', // the format of the webhook decides
  'content-encoding',
  'accept-encoding',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'http2-settings',
  'expect',
])

/** `webhook-` is signed content, `ce-` are attributes of CloudEvents: receivers trust both. */
const forbiddenPrefixes = ['webhook-', 'ce-', 'proxy-', ':']

/**
 * Checks the custom headers of a webhook, and returns them with names in lower case.
 * `authorization`, `user-agent` and the like may be set. At most 32, and 4 KiB together.
 * @throws INVALID_INPUT (field `headers`, or `headers.NAME`)
 */
export function validateCustomHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(headers)
  if (entries.length > limits.count) throw invalidInput('headers', `must be at most ${limits.count}`)
  const checked = entries.map(([name, value]) => checkHeader(name, value))
  const bytes = checked.reduce((sum, [name, value]) => sum + name.length + value.length + ': \r\n'.length, 0)
  if (bytes > limits.bytes) throw invalidInput('headers', `must be at most ${limits.bytes} bytes together`)
  if (new Set(checked.map(([name]) => name)).size < checked.length) {
    throw invalidInput('headers', 'must not name a header twice')
  }
  return Object.fromEntries(checked)
}

function checkHeader(given: string, value: unknown): [string, string] {
  const name = given.toLowerCase()
  // the name itself may be anything, so it stays out of the message until it is known to be a token
  if (!token.test(name)) throw invalidInput('headers', 'has a name that is not a header name')
  const field = `headers.${name}`
  if (forbidden.has(name) || forbiddenPrefixes.some((prefix) => name.startsWith(prefix))) {
    throw invalidInput(field, 'cannot be set')
  }
  if (typeof value !== 'string') throw invalidInput(field, 'must be a string')
  if (!printable.test(value)) throw invalidInput(field, 'must be printable ASCII')
  if (value !== value.trim()) throw invalidInput(field, 'must not start or end with a space')
  return [name, value]
}
