import type { Hono } from 'hono'
import { createNeonFetchDb } from '../db/drivers/neon-fetch.ts'
import { ringFirst } from '../doorbell/ring-first.ts'
import { createApp } from '../http/app.ts'
import type { PublishInfo } from '../http/context.ts'
import { workRoutes } from '../http/work-routes.ts'
import type { Ports } from '../ports.ts'
import type { Environment } from '../settings.ts'
import { warnOfUnknownSettings } from '../unknown-settings.ts'
import { targetPolicyOf } from '../webhooks/allowed-targets.ts'
import { createDelivery } from '../webhooks/deliver-event.ts'
import type { DrainReport } from '../webhooks/engine/drain.ts'
import { createSigner } from '../webhooks/sign.ts'
import { edgeSender } from './edge-sender.ts'
import { makeParts, missing, onceFor, type OpenEdgeDb, type Parts } from './parts.ts'
import { ringAfterChange } from './ring-after-change.ts'
import { runCron, type CronReport } from './run-cron.ts'
import { runDrain } from './run-drain.ts'
import { streamsOf, wakeQueueOf, type Wake } from './wake-queue.ts'

/** What an invocation can be kept alive with: Cloudflare's ExecutionContext, or the like. */
export interface Invocation {
  waitUntil(promise: Promise<unknown>): void
}

/** Millrace for a platform without processes: requests, and bounded drains. */
export interface Edge {
  /**
   * Answers a request. After a publish, beyond the answer, it rings the doorbell at MILLRACE_DOORBELL_URL;
   * without one, or when nobody answers there, it puts a wake into the queue that is bound as MILLRACE_QUEUE,
   * or drains the stream where there is none.
   */
  fetch(request: Request, env: Environment, invocation: Invocation): Promise<Response>
  /**
   * One bounded run of everything that is due, for a cron trigger: expired leases, schedules, webhooks and
   * their retries, retention. With nothing due it makes one statement.
   */
  drainAll(env: Environment, budgetMs: number): Promise<CronReport>
  /** One bounded drain of the streams that messages of the queue name; what is left is put back into it. */
  drainWakes(env: Environment, bodies: readonly unknown[], budgetMs: number): Promise<DrainReport>
}

/** `waitUntil` keeps a Cloudflare worker for 30 s after the answer. */
const afterPublishBudgetMs = 25_000
/** What the request may have used up before its drain begins: the key, the publish, a doorbell rung in vain. */
const requestsBeforeDrain = 3

/** The app of an environment, and the parts it is made of. */
interface Site {
  parts: Parts
  app: Hono
}

/** Options of {@link createEdge}. */
export interface EdgeOptions {
  /** Default: Neon's HTTP protocol by `fetch`. `createNeonHttpDb` of `millrace/neon-http` is Neon's own driver. */
  openDb?: OpenEdgeDb
}

/** Millrace for a platform without processes, over a database that is reached by HTTP. */
export function createEdge(ports: Ports, { openDb = createNeonFetchDb }: EdgeOptions = {}): Edge {
  const partsOf = onceFor((env) => makeParts(env, openDb))
  const invocations = new WeakMap<Request, Invocation>()

  async function makeSite(env: Environment): Promise<Site> {
    warnOfUnknownSettings(env, ports.log)
    const parts = await partsOf(env)
    const queue = wakeQueueOf(env)
    const work = ringFirst(parts.settings.doorbell, ports, ({ streamId }: PublishInfo): Promise<unknown> =>
      queue === undefined
        ? drainAfterPublish(parts, ports, streamId)
        : queue.send({ streamIds: [streamId] } satisfies Wake).catch((error: unknown) => {
            ports.log.warn({ err: error }, 'the queue takes no wake: draining right here')
            return drainAfterPublish(parts, ports, streamId)
          }),
    )
    const afterPublish = (info: PublishInfo): void =>
      invocations.get(info.request)?.waitUntil(
        work(info).catch((error: unknown) => {
          ports.log.error({ err: error }, 'the drain after a publish failed')
        }),
      )
    return { parts, app: makeApp(parts, ports, afterPublish) }
  }

  const siteOf = onceFor(makeSite)

  return {
    async fetch(request, env, invocation) {
      const { app, parts } = await siteOf(env)
      invocations.set(request, invocation)
      const answer = await app.fetch(request)
      const { doorbell } = parts.settings
      if (doorbell.url !== null) invocation.waitUntil(ringAfterChange(request, answer, { doorbell, ports }))
      return answer
    },
    async drainAll(env, budgetMs) {
      const parts = await partsOf(env)
      const budget = { ms: budgetMs, requests: parts.settings.subrequests }
      return runCron(parts, ports, budget)
    },
    async drainWakes(env, bodies, budgetMs) {
      const streamIds = streamsOf(bodies)
      const parts = await partsOf(env)
      const queue = wakeQueueOf(env)
      // putting the wakes back is a request as well
      const budget = { ms: budgetMs, requests: parts.settings.subrequests - 1 }
      const report = await runDrain(parts, ports, { kind: 'streams', streamIds }, budget)
      if (report.cut && queue !== undefined) await queue.send({ streamIds } satisfies Wake)
      return report
    },
  }
}

function makeApp(
  { settings, db, sealer }: Parts,
  ports: Ports,
  afterPublish: (info: PublishInfo) => void,
): Hono {
  const { rootKey } = settings
  if (rootKey === null) throw missing('MILLRACE_ROOT_KEY')
  return createApp({
    db,
    rootKey,
    ports,
    targetPolicy: targetPolicyOf(settings),
    sealer,
    afterPublish,
    // for test events, over a sender that keeps no connection
    delivery: createDelivery({ sender: edgeSender(settings, ports), createSigner, sealer, ports }),
    workRoutes,
  })
}

function drainAfterPublish(parts: Parts, ports: Ports, streamId: number): Promise<DrainReport> {
  const budget = { ms: afterPublishBudgetMs, requests: parts.settings.subrequests - requestsBeforeDrain }
  return runDrain(parts, ports, { kind: 'streams', streamIds: [streamId] }, budget)
}
