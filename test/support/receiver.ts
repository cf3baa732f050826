import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createWaiters } from './waiters.ts'

/** A request as it came. */
export interface ReceivedRequest {
  /** 0 for the first to arrive. */
  index: number
  method: string
  path: string
  headers: IncomingHttpHeaders
  /** Names and values in turn, as sent. */
  rawHeaders: string[]
  body: Buffer
  /** When its headers arrived, in ms of `performance.now()`. */
  at: number
  /** Whether it has been answered to the end. */
  answered: boolean
}

/** How to answer a request. */
export interface Answer {
  /** Default 200. */
  status?: number
  headers?: Record<string, string>
  body?: string | Buffer
  /** Hold the answer back until this resolves; see {@link createGate}. */
  until?: Promise<void>
  /** Reset the connection instead of an answer. */
  reset?: boolean
}

/** An answer, or a function that makes one for the request. */
export type Script = Answer | ((request: ReceivedRequest) => Answer)

/** A local webhook endpoint that records everything. */
export interface Receiver {
  /** `http://127.0.0.1:port`, without a path. */
  url: string
  /** In the order of arrival. Those whose body is still under way are not in it. */
  requests: ReceivedRequest[]
  /** How to answer from now on. Default: 200 with an empty body. */
  answer(script: Script): void
  /** How to answer the next requests, one each, before `answer` holds again. */
  answerNext(...scripts: Script[]): void
  /** Resolves with all requests as soon as there are `wanted`, or as they satisfy it. */
  waitFor(
    wanted: number | ((requests: ReceivedRequest[]) => boolean),
    timeoutMs?: number,
  ): Promise<ReceivedRequest[]>
  /** How many requests are unanswered at this moment. */
  open(): number
  close(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const waiters = createWaiters()
  const next: Script[] = []
  let standing: Script = {}
  let arrived = 0
  let open = 0

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [index, at] = [arrived++, performance.now()]
    open += 1
    response.once('close', () => {
      open -= 1
    })
    // Chosen on arrival: the first to come gets the first answer, even if its body is late.
    const script = next.shift() ?? standing
    const received = await receive(request, index, at)
    insertInOrder(requests, received)
    response.once('finish', () => {
      received.answered = true
      waiters.changed()
    })
    waiters.changed()
    await send(response, typeof script === 'function' ? script(received) : script)
  }

  const server = createServer((request, response) => {
    // A sender that gives up in between is none of the receiver's troubles.
    take(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer(script) {
      standing = script
    },
    answerNext(...scripts) {
      next.push(...scripts)
    },
    async waitFor(wanted, timeoutMs = 10_000) {
      const met = typeof wanted === 'function' ? () => wanted(requests) : () => requests.length >= wanted
      await waiters.until(
        met,
        timeoutMs,
        () => `got ${requests.length} requests: ${requests.map((one) => one.path).join(' ')}`,
      )
      return requests
    },
    open: () => open,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** A promise to hold answers back with, and the call that lets them go. */
export function createGate(): { opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

async function receive(request: IncomingMessage, index: number, at: number): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return {
    index,
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    body: Buffer.concat(chunks),
    at,
    answered: false,
  }
}

function insertInOrder(requests: ReceivedRequest[], received: ReceivedRequest): void {
  const later = requests.findIndex((other) => other.index > received.index)
  requests.splice(later === -1 ? requests.length : later, 0, received)
}

async function send(response: ServerResponse, answer: Answer): Promise<void> {
  await answer.until
  if (answer.reset === true) {
    response.socket?.resetAndDestroy()
    return
  }
  response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
}
