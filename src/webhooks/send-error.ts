import { describeError, describeSafely } from '../errors/describe-error.ts'
import { cleanLine } from './answer-text.ts'
import type { SendErrorReason, SendFailure } from './sender.ts'

const reasonsByCode: Readonly<Record<string, SendErrorReason>> = {
  TARGET_FORBIDDEN: 'forbidden',
  DNS_FAILED: 'dns',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  ECONNREFUSED: 'connect',
  EHOSTUNREACH: 'connect',
  ENETUNREACH: 'connect',
  EADDRNOTAVAIL: 'connect',
  EMFILE: 'connect',
  EPROTO: 'tls',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'alpn',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls',
  HOSTNAME_MISMATCH: 'tls',
  // what undici's parser takes for granted of an answer, such as a status from 100 on
  ERR_ASSERTION: 'protocol',
  // undici's parser gives most of its errors no code
  HTTPParserError: 'protocol',
}

const reasonsByPrefix: readonly (readonly [string, SendErrorReason])[] = [
  ['ERR_TLS_', 'tls'],
  ['ERR_SSL_', 'tls'],
  ['CERT_', 'tls'],
  ['UNABLE_TO_', 'tls'],
  ['ERR_HTTP2_', 'protocol'],
  ['HPE_', 'protocol'],
  ['UND_ERR_', 'protocol'],
]

/** How an attempt was ended from this side: by its deadline, or because it was given up. */
export type AttemptEnd = 'timeout' | 'aborted'

/** An error as a connection that was reset makes it. */
export function connectionReset(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' })
}

/** The failure that an attempt ended in. An end from this side outranks the error it provoked. */
export function toSendFailure(
  error: unknown,
  ended: AttemptEnd | null,
  timeoutMs: number,
  durationMs: number,
): SendFailure {
  if (ended === 'timeout') {
    return { kind: 'error', reason: 'timeout', message: `no complete answer in ${timeoutMs} ms`, durationMs }
  }
  if (ended === 'aborted') {
    return { kind: 'error', reason: 'aborted', message: 'the attempt was given up', durationMs }
  }
  const message = cleanLine(describe(error)) || 'no answer'
  return { kind: 'error', reason: reasonOf(error), message, durationMs }
}

/** The failure of an attempt that broke on our side, before anything was sent. */
export function brokenAttempt(error: unknown): SendFailure {
  const message = cleanLine(describeError(error, { withName: true }))
  return { kind: 'error', reason: 'protocol', message, durationMs: 0 }
}

/** Classifies by error codes, along the causes; without a known one it was the connection. */
export function reasonOf(error: unknown): SendErrorReason {
  for (const code of causesOf(error).flatMap(codesOf)) {
    const known = reasonsByCode[code] ?? reasonsByPrefix.find(([prefix]) => code.startsWith(prefix))?.[1]
    if (known !== undefined) return known
  }
  return 'connect'
}

/** The error and its causes. The chain is short; the bound is for one that bites its tail. */
function causesOf(error: unknown): { code?: unknown; name?: unknown; message?: unknown }[] {
  const chain: object[] = []
  for (let at = error; typeof at === 'object' && at !== null && chain.length < 8;) {
    chain.push(at)
    at = (at as { cause?: unknown }).cause
  }
  return chain
}

function codesOf({ code, name }: { code?: unknown; name?: unknown }): string[] {
  return [code, name].filter((mark) => typeof mark === 'string')
}

/** What the first error with a code says: "fetch failed" around it says nothing. */
function describe(error: unknown): string {
  return describeSafely(() => {
    const chain = causesOf(error)
    const telling = chain.find(({ code }) => typeof code === 'string') ?? chain.at(-1)
    if (telling?.code === 'ERR_ASSERTION') return 'the answer is not proper HTTP'
    // several addresses that all failed leave a code and no message
    return String(telling?.message || telling?.code || error)
  })
}
