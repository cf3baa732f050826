import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2'
import { collectAnswer, loggedBody } from './answer-text.ts'
import type { Deadline } from './deadline.ts'
import type { Http2Connection } from './node-http2-connection.ts'
import type { Http2Connections } from './node-http2-connections.ts'
import { connectionReset } from './send-error.ts'
import { prepareHeaders } from './send-request.ts'
import type { SendAnswer, SendRequest } from './sender.ts'

export type Answer = Pick<SendAnswer, 'status' | 'retryAfter' | 'body'>

/** The work's result, or a rejection at the deadline. */
type Race = <Result>(work: Promise<Result>) => Promise<Result>

interface Limits {
  deadline: Deadline
  race: Race
}

/** Peers refuse when they shut down or restart; who refuses again and again is left to the schedule. */
const maxRefusals = 2

/**
 * Sends a request and reads the start of the answer. What the peer says it has not looked at goes out
 * again at once, on another connection.
 */
export async function exchange(
  connections: Http2Connections,
  url: URL,
  request: SendRequest,
  deadline: Deadline,
): Promise<Answer> {
  // one for all that is waited for: each adds a listener to the deadline's signal
  const over = deadline.race(new Promise<never>(() => {}))
  over.catch(() => {})
  const race: Race = (work) => Promise.race([work, over])
  for (let refusals = 0; ;) {
    deadline.signal.throwIfAborted()
    const connection = connections.pick(url)
    const outcome = await visit(connection, connections, url, request, { deadline, race })
    if (outcome === 'elsewhere') continue
    if (outcome !== 'refused') return outcome
    if (++refusals > maxRefusals) throw connectionReset('the receiver refused the request')
  }
}

async function visit(
  connection: Http2Connection,
  connections: Http2Connections,
  url: URL,
  request: SendRequest,
  { deadline, race }: Limits,
): Promise<Answer | 'elsewhere' | 'refused'> {
  let heardBytes = connection.heardBytes()
  connection.enter()
  try {
    const session = await race(connection.ready)
    deadline.signal.throwIfAborted()
    if (session.closed || session.destroyed) return 'elsewhere'
    if (connection.users() > connection.limit() && connections.hasRoom(url)) return 'elsewhere'
    heardBytes = connection.heardBytes()
    const path = url.pathname + url.search
    const stream = session.request({ ...prepareHeaders(request.headers), ':method': 'POST', ':path': path })
    return await answerOn(stream, connection, request.body, { deadline, race })
  } finally {
    // a path that swallows everything is told by nothing else
    if (deadline.ended() === 'timeout' && connection.heardBytes() === heardBytes) connection.retire()
    connection.leave()
  }
}

async function answerOn(
  stream: ClientHttp2Stream,
  connection: Http2Connection,
  body: SendRequest['body'],
  { deadline, race }: Limits,
): Promise<Answer | 'refused'> {
  try {
    const answer = readAnswer(stream)
    stream.end(body)
    return await race(answer)
  } catch (error) {
    if (deadline.ended() !== null || !connection.refused(stream)) throw error
    connection.retire()
    return 'refused'
  } finally {
    // one that is through needs no reset, of which peers allow only so many
    if (!stream.readableEnded || !stream.writableFinished) stream.close(constants.NGHTTP2_CANCEL)
  }
}

/** Rejects with `ECONNRESET` where the answer is cut, unless it is this side that has read enough of it. */
function readAnswer(stream: ClientHttp2Stream): Promise<Answer> {
  const collected = collectAnswer()
  let headers: IncomingHttpHeaders & { ':status'?: number } = {}
  let bytes = 0
  const answer = (): Answer => ({
    status: Number(headers[':status']),
    retryAfter: headers['retry-after'] ?? null,
    body: loggedBody(headers['content-encoding'] ?? null, collected.text),
  })
  return new Promise((resolve, reject) => {
    stream.on('response', (came) => void (headers = came))
    stream.on('data', (chunk: Uint8Array) => {
      bytes += chunk.length
      if (!collected.add(chunk)) resolve(answer())
    })
    stream.on('end', () => {
      if (isWhole(stream, headers, bytes)) resolve(answer())
    })
    // whoever waits is told by the promise; what comes later is nobody's
    stream.on('error', reject)
    stream.on('close', () => reject(connectionReset('the answer was cut')))
  })
}

/**
 * Node ends the body of a broken stream as it ends that of a whole one. The peer's own end comes while the
 * stream is open, or with all the bytes that were announced, or at least without an error.
 */
function isWhole(stream: ClientHttp2Stream, headers: IncomingHttpHeaders, bytes: number): boolean {
  if (headers[':status'] === undefined) return false
  if (!stream.closed || stream.endAfterHeaders) return true
  const announced = headers['content-length']
  return announced === undefined ? stream.rstCode === constants.NGHTTP2_NO_ERROR : bytes === Number(announced)
}
