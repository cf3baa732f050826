import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { encodedNote, readAnswerText } from './answer-text.ts'
import { createCancel } from './cancel.ts'
import { startDeadline } from './deadline.ts'
import { createGuardedConnector, type TargetGuardOptions } from './node-target-guard.ts'
import { forbiddenTarget, prepareHeaders } from './send-request.ts'
import { toSendFailure } from './send-error.ts'
import type { SendAnswer, Sender, SendRequest, SendResult } from './sender.ts'
import { checkTargetUrl } from './target-url.ts'

/** The attempt's own deadline is the one that rules. */
const connectTimeoutMs = 30_000
/** A connection on which nothing moved for so long takes no new requests, and ends with the last it has. */
const idleMs = 4_000

/**
 * A sender that speaks HTTP/2 alone, on one connection per origin, under the same guard as the one for
 * HTTP/1.1. It stands on Node's own client: undici 7 sends one POST of a connection after the other, so
 * that one that hangs holds up all others.
 */
export function createHttp2Sender(options: TargetGuardOptions): Sender {
  const sessions = createSessions(options)
  const closing = createCancel()
  return {
    async send(request) {
      const startMs = performance.now()
      const check = checkTargetUrl(request.url, options.policy)
      if (!check.ok) return forbiddenTarget(check.reason)
      const deadline = startDeadline(request.timeoutMs, [request.cancel, closing])
      try {
        const exchanged = sessions
          .of(check.url)
          .then((session) => exchange(session, check.url, request, deadline.signal))
        const answer = await deadline.race(exchanged)
        return { kind: 'answer', ...answer, durationMs: performance.now() - startMs }
      } catch (error) {
        return toSendFailure(error, deadline.ended(), request.timeoutMs, performance.now() - startMs)
      } finally {
        deadline.clear()
      }
    },
    async close() {
      closing.cancel()
      await sessions.close()
    },
  }
}

/** Origins of which it is known that they speak HTTP/2 only; there are few such receivers. */
const keptOrigins = 1_000

/**
 * Speaks HTTP/1.1 wherever the receiver does, and HTTP/2 to those that speak nothing else. A receiver
 * without HTTP/1.1 refuses the handshake, before anything is sent: the same attempt goes on over HTTP/2.
 * To one receiver that speaks both, undici's HTTP/1.1 was measured three times as fast as its HTTP/2.
 */
export function preferHttp1(http1: Sender, http2: Sender): Sender {
  const needsHttp2 = new Set<string>()

  async function sendFirst(request: SendRequest): Promise<SendResult> {
    const result = await http1.send(request)
    if (result.kind === 'answer' || result.reason !== 'alpn') return result
    if (needsHttp2.size >= keptOrigins) needsHttp2.clear()
    needsHttp2.add(new URL(request.url).origin)
    const timeoutMs = Math.max(1, request.timeoutMs - Math.round(result.durationMs))
    const again = await http2.send({ ...request, timeoutMs })
    return { ...again, durationMs: again.durationMs + result.durationMs }
  }

  return {
    send(request) {
      // without TLS there is nothing that a receiver could refuse
      if (!request.url.startsWith('https:')) return http1.send(request)
      const known = needsHttp2.size > 0 && needsHttp2.has(new URL(request.url).origin)
      return known ? http2.send(request) : sendFirst(request)
    },
    async close() {
      await Promise.all([http1.close(), http2.close()])
    },
  }
}

/** One session per origin, made when it is needed and forgotten once it takes no more requests. */
function createSessions(options: TargetGuardOptions) {
  const connector = createGuardedConnector({ ...options, connectTimeoutMs, http2: true })
  const known = new Map<string, Promise<ClientHttp2Session>>()

  function open(url: URL): Promise<Socket> {
    const { hostname, host, protocol, port } = url
    return new Promise((resolve, reject) => {
      connector({ hostname, host, protocol, port: port || '443' }, (error, socket) =>
        error === null ? resolve(socket) : reject(error),
      )
    })
  }

  async function make(url: URL, forget: () => void): Promise<ClientHttp2Session> {
    const socket = await open(url)
    const session = connect(url.origin, { createConnection: () => socket })
    for (const event of ['close', 'goaway', 'error'] as const) session.on(event, forget)
    session.setTimeout(idleMs, () => {
      forget()
      session.close()
    })
    return session
  }

  return {
    of({ origin, href }: URL): Promise<ClientHttp2Session> {
      const found = known.get(origin)
      if (found !== undefined) return found
      const forget = (): void => void (known.get(origin) === made && known.delete(origin))
      const made: Promise<ClientHttp2Session> = make(new URL(href), () => forget())
      made.catch(forget)
      known.set(origin, made)
      return made
    },
    async close() {
      const open = await Promise.allSettled(known.values())
      for (const one of open) if (one.status === 'fulfilled') one.value.destroy()
    },
  }
}

type Answer = Pick<SendAnswer, 'status' | 'retryAfter' | 'body'>

async function exchange(
  session: ClientHttp2Session,
  url: URL,
  request: SendRequest,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted()
  const path = url.pathname + url.search
  const stream = session.request({ ...prepareHeaders(request.headers), ':method': 'POST', ':path': path })
  const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL)
  signal.addEventListener('abort', cancel)
  // whoever waits is told by the promise; what comes later is nobody's
  stream.on('error', () => {})
  try {
    const begun = answerOf(stream)
    stream.end(request.body)
    const { status, retryAfter, encoding } = await begun
    const text = await readAnswerText(stream as AsyncIterable<Uint8Array>)
    const plain = encoding === null || encoding.toLowerCase() === 'identity'
    return { status, retryAfter, body: plain ? text : encodedNote(encoding) }
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}

interface Head {
  status: number
  retryAfter: string | null
  encoding: string | null
}

function answerOf(stream: ClientHttp2Stream): Promise<Head> {
  return new Promise((resolve, reject) => {
    stream.on('response', (headers) => {
      const one = (name: string): string | null => headers[name]?.toString() ?? null
      resolve({
        status: Number(headers[':status']),
        retryAfter: one('retry-after'),
        encoding: one('content-encoding'),
      })
    })
    stream.on('error', reject)
    stream.on('close', () =>
      reject(Object.assign(new Error('the stream was closed without an answer'), { code: 'ECONNRESET' })),
    )
  })
}
