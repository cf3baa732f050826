import type { Agent, Dispatcher } from 'undici'
import { collectAnswer, encodedNote } from './answer-text.ts'
import type { Link } from './linked-list.ts'
import { toSendFailure, type AttemptEnd } from './send-error.ts'
import { prepareHeaders } from './send-request.ts'
import type { SendRequest, SendResult } from './sender.ts'

/** Where a request goes, taken from its URL once. */
export interface Destination {
  origin: string
  /** With the query. */
  path: string
}

/**
 * One exchange that is under way: sends a request and reads the start of the answer, under one deadline.
 * It speaks undici's dispatch interface itself: a promise, a timer and a handler, where `request` adds a
 * stream and an abort signal for every attempt, which at thousands a second is half of the work.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly result: Promise<SendResult>
  readonly #request: SendRequest
  readonly #nowMs: () => number
  readonly #startMs: number
  readonly #answer = collectAnswer()
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #link: Link<() => void> | null
  #settle: ((result: SendResult) => void) | null = null
  #controller: Dispatcher.DispatchController | null = null
  #status = 0
  #retryAfter: string | null = null
  #encoding: string | null = null

  constructor(request: SendRequest, nowMs: () => number) {
    this.#request = request
    this.#nowMs = nowMs
    this.#startMs = nowMs()
    this.result = new Promise((resolve) => void (this.#settle = resolve))
    this.#timer = setTimeout(() => this.#end('timeout'), request.timeoutMs)
    this.#link = request.cancel?.add(() => this.abort()) ?? null
    if (request.cancel?.cancelled === true) this.abort()
  }

  /** Sends the request, unless it was given up already. */
  start(agent: Agent, { origin, path }: Destination): Promise<SendResult> {
    if (this.#settle === null) return this.result
    const { headers, body } = this.#request
    agent.dispatch({ origin, path, method: 'POST', headers: prepareHeaders(headers), body }, this)
    return this.result
  }

  /** Gives it up: its result is `aborted`. */
  abort(): void {
    this.#end('aborted')
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#settle === null) controller.abort(new Error('the attempt is over'))
  }

  onResponseStart(
    ...[, status, headers]: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>
  ): void {
    this.#status = status
    this.#retryAfter = firstOf(headers['retry-after'])
    this.#encoding = firstOf(headers['content-encoding'])
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#answer.add(chunk)) return
    this.onResponseEnd()
    controller.abort(new Error('the rest of the answer is not read'))
  }

  onResponseEnd(): void {
    const encoding = this.#encoding
    const plain = encoding === null || encoding.toLowerCase() === 'identity'
    const body = plain ? this.#answer.text() : encodedNote(encoding)
    const durationMs = this.#nowMs() - this.#startMs
    this.#finish({ kind: 'answer', status: this.#status, retryAfter: this.#retryAfter, body, durationMs })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error, null)
  }

  /** What is still open of the exchange is broken off; undici may not even have begun. */
  #end(how: AttemptEnd): void {
    this.#fail(null, how)
    this.#controller?.abort(new Error('the attempt is over'))
  }

  #fail(error: Error | null, how: AttemptEnd | null): void {
    this.#finish(toSendFailure(error, how, this.#request.timeoutMs, this.#nowMs() - this.#startMs))
  }

  /** The first end counts. */
  #finish(result: SendResult): void {
    if (this.#settle === null) return
    const settle = this.#settle
    this.#settle = null
    clearTimeout(this.#timer)
    if (this.#link !== null) this.#request.cancel?.delete(this.#link)
    settle(result)
  }
}

function firstOf(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null
}
