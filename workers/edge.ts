// Millrace on Cloudflare Workers: the HTTP API, and delivery by short drains, with no VM anywhere.
import { createEdge } from '../src/edge/create-edge.ts'
import type { Log } from '../src/ports.ts'
import type { Environment } from '../src/settings.ts'
import { createSystemPorts } from '../src/system-ports.ts'

/** Workers Logs index the fields of an object. */
const log: Log = {
  debug() {},
  info: (facts, message) => console.log({ message, ...facts }),
  warn: (facts, message) => console.warn({ message, ...facts }),
  error: (facts, message) => console.error({ message, ...facts }),
}

/** A cron run may take 15 minutes; the next one comes after one. */
const cronBudgetMs = 50_000

const edge = createEdge(createSystemPorts(log))

export default {
  fetch: edge.fetch,
  scheduled: async (_event: unknown, env: Environment): Promise<void> => {
    await edge.drainAll(env, cronBudgetMs)
  },
}
