// deno serve --allow-net --allow-env main.ts, or on Deno Deploy as it is.
import process from 'node:process'
import { createEdge } from 'millrace/edge'
import { createSystemPorts } from 'millrace/ports'

declare const Deno: { cron(name: string, schedule: string, run: () => Promise<unknown>): Promise<void> }

const edge = createEdge(createSystemPorts(console))
const env = { MILLRACE_SUBREQUESTS: '10000', ...process.env }
/** A Deno process goes on after an answer by itself. */
const invocation = { waitUntil() {} }

void Deno.cron('millrace', '* * * * *', () => edge.drainAll(env, 50_000))

export default { fetch: (request: Request) => edge.fetch(request, env, invocation) }
