import { createLinkedList } from './linked-list.ts'
import { createConnections } from './node-connections.ts'
import { createDeadlines } from './node-deadlines.ts'
import { Exchange, type Destination, type Exchanges } from './node-exchange.ts'
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
 * The sender for Node: undici on connections of its own, which ask the target guard for
 * every connection, follows no redirect and reads no proxy from the environment.
 */
export function createNodeSender(options: NodeSenderOptions): Sender {
  const nowMs = options.monotonicMs ?? (() => performance.now())
  const shared: Exchanges = {
    connections: createConnections({
      connect: createGuardedConnector({ ...options, connectTimeoutMs }),
      keepAliveTimeout: keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
    }),
    underWay: createLinkedList(),
    deadlines: createDeadlines(nowMs),
    nowMs,
  }
  const checkTarget = createTargetCheck(options.policy)
  let closed = false
  return {
    // no async function: its promise and its turns would come on top of the exchange's own
    send(request) {
      const target = checkTarget(request.url)
      if ('reason' in target) return Promise.resolve(forbiddenTarget(target.reason))
      if (closed) return Promise.resolve(toSendFailure(null, 'aborted', request.timeoutMs, 0))
      return new Exchange(request, shared).start(target)
    },
    async close() {
      closed = true
      shared.underWay.forEach((exchange) => exchange.abort())
      await shared.connections.destroy()
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
