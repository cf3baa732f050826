import { createCancel } from './cancel.ts'
import { startDeadline } from './deadline.ts'
import { createHttp2Connections } from './node-http2-connections.ts'
import { exchange } from './node-http2-exchange.ts'
import type { TargetGuardOptions } from './node-target-guard.ts'
import { forbiddenTarget } from './send-request.ts'
import { toSendFailure } from './send-error.ts'
import type { Sender, SendRequest, SendResult } from './sender.ts'
import { checkTargetUrl } from './target-url.ts'

/**
 * A sender that speaks HTTP/2 alone, many requests at once on one connection, under the same guard as the
 * one for HTTP/1.1. It stands on Node's own client: undici 7 sends one POST of a connection after the other,
 * so that one that hangs holds up all others.
 */
export function createHttp2Sender(options: TargetGuardOptions): Sender {
  const connections = createHttp2Connections(options)
  const closing = createCancel()
  return {
    async send(request) {
      const startMs = performance.now()
      const check = checkTargetUrl(request.url, options.policy)
      if (!check.ok) return forbiddenTarget(check.reason)
      const deadline = startDeadline(request.timeoutMs, [request.cancel, closing])
      try {
        const answer = await exchange(connections, check.url, request, deadline)
        return { kind: 'answer', ...answer, durationMs: performance.now() - startMs }
      } catch (error) {
        return toSendFailure(error, deadline.ended(), request.timeoutMs, performance.now() - startMs)
      } finally {
        deadline.clear()
      }
    },
    async close() {
      closing.cancel()
      connections.end()
    },
  }
}

/** Origins that are remembered to speak HTTP/2 only; there are few such receivers. */
const keptOrigins = 1_000

/**
 * Speaks HTTP/1.1 wherever the receiver does, and HTTP/2 to those that speak nothing else. A receiver
 * without HTTP/1.1 refuses the handshake, before anything is sent: the same attempt goes on over HTTP/2.
 * One that went back to HTTP/1.1 says so at its next connection, and the attempt goes on over that.
 * To one receiver that speaks both, undici's HTTP/1.1 was measured three times as fast as its HTTP/2.
 */
export function preferHttp1(http1: Sender, http2: Sender): Sender {
  const needsHttp2 = new Set<string>()

  function learn(origin: string): void {
    const [oldest] = needsHttp2
    if (needsHttp2.size >= keptOrigins && oldest !== undefined) needsHttp2.delete(oldest)
    needsHttp2.add(origin)
  }

  return {
    send(request) {
      // without TLS there is nothing that a receiver could refuse
      if (!request.url.startsWith('https:')) return http1.send(request)
      const known = needsHttp2.size > 0 && needsHttp2.has(originOf(request))
      return known
        ? sendByEither(http2, http1, request, () => needsHttp2.delete(originOf(request)))
        : sendByEither(http1, http2, request, () => learn(originOf(request)))
    },
    async close() {
      await Promise.all([http1.close(), http2.close()])
    },
  }
}

function originOf({ url }: SendRequest): string {
  return new URL(url).origin
}

/** By the second one, in the time that is left, where the receiver does not speak the protocol of the first. */
async function sendByEither(
  first: Sender,
  second: Sender,
  request: SendRequest,
  turn: () => void,
): Promise<SendResult> {
  const result = await first.send(request)
  if (result.kind === 'answer' || result.reason !== 'alpn') return result
  turn()
  const timeoutMs = Math.max(1, request.timeoutMs - Math.round(result.durationMs))
  const again = await second.send({ ...request, timeoutMs })
  return { ...again, durationMs: again.durationMs + result.durationMs }
}
