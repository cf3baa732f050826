import { loggedBody, readAnswerText } from './answer-text.ts'
import { createCancel, type Cancel } from './cancel.ts'
import { startDeadline } from './deadline.ts'
import { forbiddenTarget, prepareHeaders } from './send-request.ts'
import { toSendFailure } from './send-error.ts'
import type { SendAnswer, Sender, SendRequest, SendResult } from './sender.ts'
import { checkTargetUrl, type TargetPolicy } from './target-url.ts'

export interface FetchSenderOptions {
  /** The runtime's `fetch`. */
  fetch: (url: string, init: RequestInit) => Promise<Response>
  policy: TargetPolicy
  /** A clock that never goes back, in milliseconds. Defaults to `performance.now`. */
  monotonicMs?: () => number
}

/**
 * The sender for the edge. It checks each URL before sending; the address a name resolves
 * to is out of its sight, so it is for runtimes whose `fetch` cannot reach private
 * networks (Cloudflare, Deno Deploy, Vercel). On Node use node-sender.ts.
 */
export function createFetchSender(options: FetchSenderOptions): Sender {
  const closing = createCancel()
  return {
    send: (request) => send(request, options, closing),
    async close() {
      closing.cancel()
    },
  }
}

async function send(request: SendRequest, options: FetchSenderOptions, closing: Cancel): Promise<SendResult> {
  const nowMs = options.monotonicMs ?? (() => performance.now())
  const startMs = nowMs()
  const check = checkTargetUrl(request.url, options.policy)
  if (!check.ok) return forbiddenTarget(check.reason)
  const deadline = startDeadline(request.timeoutMs, [request.cancel, closing])
  try {
    const answer = await deadline.race(exchange(check.url, request, options, deadline.signal))
    return { kind: 'answer', ...answer, durationMs: nowMs() - startMs }
  } catch (error) {
    return toSendFailure(error, deadline.ended(), request.timeoutMs, nowMs() - startMs)
  } finally {
    deadline.clear()
  }
}

async function exchange(
  url: URL,
  request: SendRequest,
  // taken apart, since some runtimes refuse to run fetch as a method of another object
  { fetch }: FetchSenderOptions,
  signal: AbortSignal,
): Promise<Pick<SendAnswer, 'status' | 'retryAfter' | 'body'>> {
  const headers = prepareHeaders(request.headers)
  // a view on shared memory is no BodyInit by type, and none of ours is one
  const sent = request.body as string | Uint8Array<ArrayBuffer>
  const response = await fetch(url.href, { method: 'POST', headers, body: sent, redirect: 'manual', signal })
  const body = await readBody(response)
  return { status: statusOf(response), retryAfter: response.headers.get('retry-after'), body }
}

/** Runtimes after the letter of the Fetch standard hide a redirect behind status 0. */
function statusOf(response: Response): number {
  return response.type === 'opaqueredirect' ? 302 : response.status
}

async function readBody(response: Response): Promise<string> {
  const text = response.body === null ? '' : await readAnswerText(chunksOf(response.body))
  return loggedBody(response.headers.get('content-encoding'), () => text)
}

async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    // not awaited: an endless sender may never confirm
    reader.cancel().catch(() => {})
  }
}
