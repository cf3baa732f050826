import type { Cancel } from './cancel.ts'

/** One attempt to deliver: a POST that is ready to go. */
export interface SendRequest {
  url: string
  /** Names in lower case. */
  headers: Record<string, string>
  body: string | Uint8Array
  /** One deadline over name lookup, connect, headers and body of the answer. */
  timeoutMs: number
  /** Gives the attempt up; its result is then `aborted`. */
  cancel?: Cancel
}

/** Why no complete answer came. */
export type SendErrorReason =
  | 'timeout'
  | 'connect'
  | 'dns'
  | 'tls'
  /** The receiver speaks no protocol that was offered. */
  | 'alpn'
  | 'reset'
  | 'forbidden'
  | 'aborted'
  | 'protocol'

export interface SendAnswer {
  kind: 'answer'
  /** Redirects are never followed: their 3xx stands here. */
  status: number
  /** The `Retry-After` header as it came. */
  retryAfter: string | null
  /** The first 16 KiB of the answer's body as clean text: see answer-text.ts. */
  body: string
  durationMs: number
}

export interface SendFailure {
  kind: 'error'
  reason: SendErrorReason
  /** For the attempt log; one line of at most 300 characters. */
  message: string
  durationMs: number
}

export type SendResult = SendAnswer | SendFailure

/** The port through which deliveries leave. `send` never rejects: failing is a result. */
export interface Sender {
  send(request: SendRequest): Promise<SendResult>
  /** Ends idle connections, and attempts still in flight as `aborted`. */
  close(): Promise<void>
}
