import { Agent, type Dispatcher } from 'undici'
import { encodedNote, readAnswerText } from './answer-text.ts'
import { startDeadline } from './deadline.ts'
import type { ResolveName } from './node-resolve.ts'
import { createGuardedConnector } from './node-target-guard.ts'
import { forbiddenTarget, prepareHeaders } from './send-request.ts'
import { toSendFailure } from './send-error.ts'
import type { SendAnswer, Sender, SendRequest, SendResult } from './sender.ts'
import { checkTargetUrl, type TargetPolicy } from './target-url.ts'

export interface NodeSenderOptions {
  policy: TargetPolicy
  /** Resolves names; see node-target-guard.ts for the default. */
  resolve?: ResolveName
  /** A clock that never goes back, in milliseconds. Defaults to `performance.now`. */
  monotonicMs?: () => number
}

/** The longest time-out a webhook can have: the attempt's own deadline is the one that rules. */
const connectTimeoutMs = 30_000

/** Receivers commonly close idle connections after 5 s; a POST on a closing one would fail. */
const keepAliveMs = 4_000

/**
 * The sender for Node: undici on an agent of its own, which asks the target guard for
 * every connection, follows no redirect and reads no proxy from the environment.
 */
export function createNodeSender(options: NodeSenderOptions): Sender {
  const agent = new Agent({
    connect: createGuardedConnector({ ...options, connectTimeoutMs }),
    keepAliveTimeout: keepAliveMs,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const closing = new AbortController()
  const nowMs = options.monotonicMs ?? (() => performance.now())
  return {
    send: (request) => send(agent, request, options.policy, nowMs, closing.signal),
    async close() {
      closing.abort()
      await agent.destroy()
    },
  }
}

async function send(
  agent: Agent,
  request: SendRequest,
  policy: TargetPolicy,
  nowMs: () => number,
  closing: AbortSignal,
): Promise<SendResult> {
  const startMs = nowMs()
  const check = checkTargetUrl(request.url, policy)
  if (!check.ok) return forbiddenTarget(check.reason)
  const deadline = startDeadline(request.timeoutMs, [request.signal, closing])
  try {
    const answer = await deadline.race(exchange(agent, check.url, request, deadline.signal))
    return { kind: 'answer', ...answer, durationMs: nowMs() - startMs }
  } catch (error) {
    return toSendFailure(error, deadline, request.timeoutMs, nowMs() - startMs)
  } finally {
    deadline.clear()
  }
}

async function exchange(
  agent: Agent,
  url: URL,
  request: SendRequest,
  signal: AbortSignal,
): Promise<Pick<SendAnswer, 'status' | 'retryAfter' | 'body'>> {
  const response = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: 'POST',
    headers: prepareHeaders(request.headers),
    body: request.body,
    signal,
  })
  const body = await readBody(response)
  return { status: response.statusCode, retryAfter: firstOf(response.headers['retry-after']), body }
}

async function readBody({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  // leaving the loop early destroys the body, which then reports that nobody reads it
  body.on('error', () => {})
  const text = await readAnswerText(body)
  const encoding = firstOf(headers['content-encoding'])
  return encoding === null || encoding.toLowerCase() === 'identity' ? text : encodedNote(encoding)
}

function firstOf(value: string | string[] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null
}
