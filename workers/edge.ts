// Millrace on Cloudflare Workers: the HTTP API, and delivery by short drains, with no VM anywhere.
import { createEdge } from '../src/edge/create-edge.ts'
import type { Log } from '../src/ports.ts'
import type { Environment } from '../src/settings.ts'
import { createSystemPorts } from '../src/system-ports.ts'

/** Workers Logs index the fields of an object, but show an error inside of one as nothing. */
const log: Log = {
  debug() {},
  info: (facts, message) => console.log(line(facts, message)),
  warn: (facts, message) => console.warn(line(facts, message)),
  error: (facts, message) => console.error(line(facts, message)),
}

function line(facts: object, message: string): object {
  const readable = Object.entries(facts).map(([name, fact]) => [
    name,
    fact instanceof Error ? (fact.stack ?? fact.message) : fact,
  ])
  return { message, ...Object.fromEntries(readable) }
}

/** Cron and queue runs may take 15 minutes; but the next cron run comes after one. */
const budgetMs = 50_000

const edge = createEdge(createSystemPorts(log))

/** A batch of Cloudflare Queues: it is acknowledged by returning, and comes again after an error. */
interface Batch {
  messages: readonly { body: unknown }[]
}

export default {
  fetch: edge.fetch,
  scheduled: async (_event: unknown, env: Environment): Promise<void> => {
    await edge.drainAll(env, budgetMs)
  },
  queue: async ({ messages }: Batch, env: Environment): Promise<void> => {
    const bodies = messages.map(({ body }) => body)
    await edge.drainWakes(env, bodies, budgetMs)
  },
}
