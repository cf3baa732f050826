// A worker behind what Cloudflare does to it and workerd alone does not: an invocation that makes
// one request too many gets an error, and only six of its connections wait for an answer at once.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Invocation } from '../../../src/edge/create-edge.ts'
import type { Environment } from '../../../src/settings.ts'

/** One run of a handler, with what it left to `waitUntil`. */
export interface MeasuredInvocation {
  kind: 'fetch' | 'scheduled' | 'queue'
  /** Requests made or tried, by host and port. */
  requests: Record<string, number>
  total: number
  /** Requests beyond the limit. */
  refused: number
  ended: boolean
}

const maxOpen = 6
const current = new AsyncLocalStorage<Run>()
const runs: Run[] = []

interface Run {
  report: MeasuredInvocation
  limit: number
  open: number
  waiting: (() => void)[]
}

const platformFetch = globalThis.fetch.bind(globalThis)

globalThis.fetch = async (input, init) => {
  const run = current.getStore()
  if (run === undefined) return platformFetch(input, init)
  const url = input instanceof Request ? input.url : String(input)
  count(run, new URL(url).host)
  while (run.open >= maxOpen) await new Promise<void>((resolve) => run.waiting.push(resolve))
  run.open++
  try {
    return await platformFetch(input, init)
  } finally {
    run.open--
    run.waiting.shift()?.()
  }
}

function count({ report, limit }: Run, host: string): void {
  report.requests[host] = (report.requests[host] ?? 0) + 1
  report.total++
  if (report.total <= limit) return
  report.refused++
  throw new Error('Too many subrequests by single Worker invocation.')
}

async function measured<T>(
  kind: MeasuredInvocation['kind'],
  env: Environment,
  invocation: Invocation,
  work: (counted: Invocation) => Promise<T>,
): Promise<T> {
  const report: MeasuredInvocation = { kind, requests: {}, total: 0, refused: 0, ended: false }
  const run = { report, limit: Number(env.MILLRACE_SUBREQUESTS ?? 50), open: 0, waiting: [] }
  runs.push(run)
  const left: Promise<unknown>[] = []
  const counted: Invocation = {
    waitUntil(promise) {
      left.push(promise)
      invocation.waitUntil(promise)
    },
  }
  try {
    return await current.run(run, () => work(counted))
  } finally {
    invocation.waitUntil(Promise.allSettled(left).then(() => (report.ended = true)))
  }
}

/** The handlers of a worker, as the platform calls them. */
export interface Handlers {
  fetch(request: Request, env: Environment, invocation: Invocation): Promise<Response>
  scheduled(event: unknown, env: Environment): Promise<void>
  queue(batch: { messages: readonly { body: unknown }[] }, env: Environment): Promise<void>
}

/** The same handlers, measured; `GET /measured` tells what each invocation did. */
export function measure(worker: Handlers) {
  return {
    async fetch(request: Request, env: Environment, invocation: Invocation): Promise<Response> {
      if (new URL(request.url).pathname === '/measured')
        return Response.json(runs.map(({ report }) => report))
      return measured('fetch', env, invocation, (counted) => worker.fetch(request, env, counted))
    },
    scheduled: (event: unknown, env: Environment, invocation: Invocation): Promise<void> =>
      measured('scheduled', env, invocation, () => worker.scheduled(event, env)),
    queue: (
      batch: Parameters<Handlers['queue']>[0],
      env: Environment,
      invocation: Invocation,
    ): Promise<void> => measured('queue', env, invocation, () => worker.queue(batch, env)),
  }
}
