import { Agent } from 'undici'
import { createLinkedList } from './linked-list.ts'
import { Exchange, type Destination } from './node-exchange.ts'
import type { ResolveName } from './node-resolve.ts'
import { createGuardedConnector } from './node-target-guard.ts'
import { forbiddenTarget } from './send-request.ts'
import { toSendFailure } from './send-error.ts'
import type { Sender } from './sender.ts'
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
  const nowMs = options.monotonicMs ?? (() => performance.now())
  const checkTarget = createTargetCheck(options.policy)
  const underWay = createLinkedList<Exchange>()
  let closed = false
  return {
    async send(request) {
      const target = checkTarget(request.url)
      if ('reason' in target) return forbiddenTarget(target.reason)
      if (closed) return toSendFailure(null, 'aborted', request.timeoutMs, 0)
      const exchange = new Exchange(request, nowMs)
      const link = underWay.add(exchange)
      const result = await exchange.start(agent, target)
      underWay.remove(link)
      return result
    },
    async close() {
      closed = true
      underWay.forEach((exchange) => exchange.abort())
      await agent.destroy()
    },
  }
}

/** The URLs of webhooks that are being delivered to; the check is by spelling, so its answer does not age. */
const keptChecks = 1_000

function createTargetCheck(policy: TargetPolicy): (url: string) => Destination | { reason: string } {
  const known = new Map<string, Destination | { reason: string }>()
  return (given) => {
    let target = known.get(given)
    if (target === undefined) {
      if (known.size >= keptChecks) known.clear()
      const check = checkTargetUrl(given, policy)
      target = check.ok
        ? { origin: check.url.origin, path: check.url.pathname + check.url.search }
        : { reason: check.reason }
      known.set(given, target)
    }
    return target
  }
}
