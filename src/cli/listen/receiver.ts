import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { MillraceError } from '../../errors/millrace-error.ts'

/** How the receiver answers. */
export interface AnswerPlan {
  /** In turn, and again from the first. At least one. */
  statuses: readonly number[]
  /** How long each answer is held back. */
  delayMs: number
  /** The Retry-After of answers that are no success; null: none. */
  retryAfterSeconds: number | null
}

/** A request that came. */
export interface Received {
  headers: IncomingHttpHeaders
  body: Uint8Array
  /** What it is answered with. */
  status: number
}

/** A receiver that runs. */
export interface Receiver {
  /** `http://127.0.0.1:PORT/` */
  url: string
  close(): Promise<void>
}

/** Deliveries are events of at most 1 MiB; what is larger is not from Millrace. */
const maxBodyBytes = 4 * 1024 * 1024

/**
 * Listens on 127.0.0.1 and hands on every POST, in the order in which they have come in whole.
 *
 * @param port 0: a free one
 * @throws INVALID_SETTING when the port is taken or not allowed
 */
export async function startReceiver(
  port: number,
  plan: AnswerPlan,
  onReceived: (received: Received) => Promise<void>,
): Promise<Receiver> {
  const stop = new AbortController()
  let count = 0
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return refuse(response, 405, { allow: 'POST' })
    const body = await readBody(request)
    if (body === null) return refuse(response, 413, { connection: 'close' })
    const status = plan.statuses[count++ % plan.statuses.length] ?? 200
    await onReceived({ headers: request.headers, body, status })
    if (plan.delayMs > 0) await delay(plan.delayMs, undefined, { signal: stop.signal })
    const retryAfter = status >= 300 && plan.retryAfterSeconds !== null
    response.writeHead(status, retryAfter ? { 'retry-after': String(plan.retryAfterSeconds) } : {}).end()
  }
  const server = createServer((request, response) => {
    // a sender that gives up, and an answer held back beyond the end, are no failures of the receiver's
    answer(request, response).catch(() => response.destroy())
  })
  await listening(server, port)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async close() {
      stop.abort()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string>): void {
  response.writeHead(status, headers).end()
}

async function readBody(request: IncomingMessage): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function listening(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const problem =
        error.code === 'EADDRINUSE'
          ? `port ${port} is taken by another program: choose another with --port (0: any free one)`
          : `port ${port} cannot be used: ${error.message}`
      reject(new MillraceError('INVALID_SETTING', problem, { details: { setting: '--port' }, cause: error }))
    })
    server.listen(port, '127.0.0.1', resolve)
  })
}
