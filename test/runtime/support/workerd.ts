import { Log, LogLevel, Miniflare, type WorkerOptions } from 'miniflare'
import { readFile } from 'node:fs/promises'
import { bundleEdge } from '../../../scripts/bundle-edge.mjs'

/** A worker to start in workerd. */
export interface WorkerSetup {
  /** Its entry file, relative to the package. */
  entry: string
  name?: string
  bindings?: Record<string, string>
  /** More of Miniflare's options: queues, for one. */
  options?: Partial<WorkerOptions>
}

/** Workers that run. */
export interface Workerd {
  miniflare: Miniflare
  /** Sends a request to the first worker, through a socket, whatever host the request names. */
  fetch(request: Request): Promise<Response>
  /** Runs the cron handler of a worker, by default of the first one, to its end. */
  cron(name?: string): Promise<void>
  close(): Promise<void>
}

/** Starts workers in one workerd, with the compatibility that wrangler.toml deploys them with. */
export async function startWorkerd(...setups: WorkerSetup[]): Promise<Workerd> {
  const compatibility = await readCompatibility()
  const workers = await Promise.all(
    setups.map(async ({ entry, name = entry, bindings = {}, options }) => {
      const script = await bundleOnce(entry)
      return { name, modules: true as const, script, ...compatibility, ...loopbackOnly, bindings, ...options }
    }),
  )
  const miniflare = new Miniflare({
    workers: workers as [WorkerOptions],
    host: '127.0.0.1',
    // nothing is asked of Cloudflare
    cf: false,
    log: new Log(LogLevel.ERROR),
    // what the workers log is not what is tested
    handleStructuredLogs() {},
  })
  const origin = await miniflare.ready
  return {
    miniflare,
    fetch(request) {
      const url = new URL(request.url)
      url.host = origin.host
      // `duplex` is what Node's fetch wants with a streamed body
      const sent = new Request(url, new Request(request, { duplex: 'half' } as RequestInit))
      // workerd may close a connection at the very moment at which the next request is written on it
      sent.headers.set('connection', 'close')
      return fetch(sent)
    },
    async cron(name) {
      const worker = (await miniflare.getWorker(name)) as unknown as ScheduledWorker
      const { outcome } = await worker.scheduled({ cron: '* * * * *' })
      if (outcome !== 'ok') throw new Error(`the cron handler ended with ${outcome}`)
    },
    close: () => miniflare.dispose(),
  }
}

/** What Miniflare's type of a worker says only beside Cloudflare's own types. */
interface ScheduledWorker {
  scheduled(options: { cron: string }): Promise<{ outcome: string }>
}

/** Webhooks of the tests name public hosts, too: nothing may get there. */
const loopbackOnly = { outboundService: { network: { allow: ['127.0.0.1/32'], deny: [] } } }

const bundles = new Map<string, Promise<string>>()

function bundleOnce(entry: string): Promise<string> {
  const known = bundles.get(entry) ?? bundleEdge(entry).then(({ code }) => code)
  bundles.set(entry, known)
  return known
}

async function readCompatibility(): Promise<{ compatibilityDate: string; compatibilityFlags: string[] }> {
  const text = await readFile(new URL('../../../wrangler.toml', import.meta.url), 'utf8')
  const compatibilityDate = /^compatibility_date = "(.+)"$/m.exec(text)?.[1]
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(text)?.[1]
  if (compatibilityDate === undefined || flags === undefined)
    throw new Error('wrangler.toml names no compatibility date or flags')
  return { compatibilityDate, compatibilityFlags: JSON.parse(flags) as string[] }
}
