import type { Client, Dispatcher } from 'undici'
import { collectAnswer, loggedBody, type AnswerCollector } from './answer-text.ts'
import type { Link, LinkedList } from './linked-list.ts'
import type { Connections } from './node-connections.ts'
import type { Deadlines, RunningDeadline } from './node-deadlines.ts'
import { toSendFailure, type AttemptEnd } from './send-error.ts'
import { prepareHeaders } from './send-request.ts'
import type { SendRequest, SendResult } from './sender.ts'

/** Where a request goes, taken from its URL once. */
export interface Destination {
  origin: string
  /** With the query. */
  path: string
}

/** What the exchanges of a sender share. */
export interface Exchanges {
  connections: Connections
  /** All that are under way. */
  underWay: LinkedList<Exchange>
  deadlines: Deadlines
  /** A clock that never goes back, in milliseconds. */
  nowMs: () => number
}

/**
 * One exchange that is under way: sends a request and reads the start of the answer, under one deadline.
 * It speaks undici's dispatch interface itself: a promise, a timer and a handler, where `request` adds a
 * stream and an abort signal for every attempt, which at thousands a second is half of the work.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly result: Promise<SendResult>
  readonly #request: SendRequest
  readonly #shared: Exchanges
  readonly #startMs: number
  readonly #deadline: RunningDeadline
  readonly #place: Link<Exchange>
  readonly #link: Link<() => void> | null
  /** Most answers have no body. */
  #answer: AnswerCollector | null = null
  #settle: ((result: SendResult) => void) | null = null
  #controller: Dispatcher.DispatchController | null = null
  #origin = ''
  #client: Client | null = null
  #status = 0
  #retryAfter: string | null = null
  #encoding: string | null = null

  constructor(request: SendRequest, shared: Exchanges) {
    this.#request = request
    this.#shared = shared
    this.#startMs = shared.nowMs()
    this.#place = shared.underWay.add(this)
    this.result = new Promise((resolve) => void (this.#settle = resolve))
    this.#deadline = shared.deadlines.start(request.timeoutMs, () => this.#end('timeout'))
    this.#link = request.cancel?.add(() => this.abort()) ?? null
    if (request.cancel?.cancelled === true) this.abort()
  }

  /** Sends the request, unless it was given up already. */
  start({ origin, path }: Destination): Promise<SendResult> {
    if (this.#settle === null) return this.result
    const { headers, body } = this.#request
    const client = this.#shared.connections.take(origin)
    this.#client = client
    this.#origin = origin
    client.dispatch({ path, method: 'POST', headers: prepareHeaders(headers), body }, this)
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
    this.#answer ??= collectAnswer()
    if (this.#answer.add(chunk)) return
    this.#succeed()
    controller.abort(new Error('the rest of the answer is not read'))
  }

  onResponseEnd(): void {
    this.#giveBack()
    this.#succeed()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#giveBack()
    this.#fail(error, null)
  }

  #succeed(): void {
    const body = loggedBody(this.#encoding, () => this.#answer?.text() ?? '')
    const durationMs = this.#shared.nowMs() - this.#startMs
    this.#finish({ kind: 'answer', status: this.#status, retryAfter: this.#retryAfter, body, durationMs })
  }

  /** Only undici knows when it is through with a request: one that was given up may not even have begun. */
  #giveBack(): void {
    const client = this.#client
    if (client === null) return
    this.#client = null
    this.#shared.connections.giveBack(this.#origin, client)
  }

  /** What is still open of the exchange is broken off. */
  #end(how: AttemptEnd): void {
    this.#fail(null, how)
    this.#controller?.abort(new Error('the attempt is over'))
  }

  #fail(error: Error | null, how: AttemptEnd | null): void {
    this.#finish(toSendFailure(error, how, this.#request.timeoutMs, this.#shared.nowMs() - this.#startMs))
  }

  /** The first end counts. */
  #finish(result: SendResult): void {
    if (this.#settle === null) return
    const settle = this.#settle
    this.#settle = null
    this.#shared.deadlines.clear(this.#deadline)
    this.#shared.underWay.remove(this.#place)
    if (this.#link !== null) this.#request.cancel?.delete(this.#link)
    settle(result)
  }
}

function firstOf(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null
}
