import type { Agent, Dispatcher } from 'undici'
import { collectAnswer, encodedNote } from './answer-text.ts'
import { toSendFailure, type AttemptEnd } from './send-error.ts'
import { prepareHeaders } from './send-request.ts'
import type { SendAnswer, SendRequest, SendResult } from './sender.ts'

/** One exchange that is under way. */
export interface Exchange {
  result: Promise<SendResult>
  /** Gives it up: its result is `aborted`. */
  abort(): void
}

/**
 * Sends one request and reads the start of the answer, under one deadline. It speaks undici's dispatch
 * interface itself: a promise, a timer and a handler, where `request` adds a stream and an abort signal for
 * every attempt, which at thousands a second is half of the work.
 */
export function startExchange(agent: Agent, url: URL, request: SendRequest, nowMs: () => number): Exchange {
  const startMs = nowMs()
  const answer = collectAnswer()
  let controller: Dispatcher.DispatchController | null = null
  let head: Pick<SendAnswer, 'status' | 'retryAfter'> & { encoding: string | null } = {
    ...{ status: 0, retryAfter: null, encoding: null },
  }
  let settle: ((result: SendResult) => void) | null = null
  const result = new Promise<SendResult>((resolve) => void (settle = resolve))

  /** The first end counts. What is still open of the exchange is broken off; undici may not even have begun. */
  function finish(make: (durationMs: number) => SendResult): void {
    if (settle === null) return
    const done = settle
    settle = null
    clearTimeout(timer)
    request.signal?.removeEventListener('abort', abort)
    done(make(nowMs() - startMs))
  }
  function end(how: AttemptEnd): void {
    finish((durationMs) => toSendFailure(null, how, request.timeoutMs, durationMs))
    controller?.abort(new Error('the attempt is over'))
  }
  function answered(): void {
    const { status, retryAfter, encoding } = head
    const plain = encoding === null || encoding.toLowerCase() === 'identity'
    const body = plain ? answer.text() : encodedNote(encoding)
    finish((durationMs) => ({ kind: 'answer', status, retryAfter, body, durationMs }))
  }
  const abort = (): void => end('aborted')
  const timer = setTimeout(() => end('timeout'), request.timeoutMs)
  if (request.signal?.aborted === true) abort()
  else request.signal?.addEventListener('abort', abort)

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started
      if (settle === null) started.abort(new Error('the attempt is over'))
    },
    onResponseStart(_controller, status, headers) {
      const encoding = firstOf(headers['content-encoding'])
      head = { status, retryAfter: firstOf(headers['retry-after']), encoding }
    },
    onResponseData(started, chunk) {
      if (answer.add(chunk)) return
      answered()
      started.abort(new Error('the rest of the answer is not read'))
    },
    onResponseEnd: answered,
    onResponseError(_controller, error) {
      finish((durationMs) => toSendFailure(error, null, request.timeoutMs, durationMs))
    },
  }
  if (settle !== null) agent.dispatch({ ...optionsOf(url, request) }, handler)
  return { result, abort }
}

function optionsOf(url: URL, request: SendRequest): Dispatcher.DispatchOptions {
  const { headers, body } = request
  const path = url.pathname + url.search
  return { origin: url.origin, path, method: 'POST', headers: prepareHeaders(headers), body }
}

function firstOf(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null
}
