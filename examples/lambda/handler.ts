// AWS Lambda behind a function URL or an API Gateway (`handler`), and by an EventBridge schedule (`drain`).
import { Hono } from 'hono'
import { handle, type LambdaEvent } from 'hono/aws-lambda'
import { createEdge } from 'millrace/edge'
import { createSystemPorts } from 'millrace/ports'

const edge = createEdge(createSystemPorts(console))
const env = { MILLRACE_SUBREQUESTS: '10000', ...process.env }

const app = new Hono().all('*', async (c) => {
  // Lambda freezes the process with the answer, so the answer waits for the drain. To answer at once, give
  // `env` a MILLRACE_QUEUE whose `send` puts the wake into SQS, and call `edge.drainWakes` from there.
  const work: Promise<unknown>[] = []
  const response = await edge.fetch(c.req.raw, env, { waitUntil: (promise) => void work.push(promise) })
  await Promise.all(work)
  return response
})

const answer = handle(app)

export const handler = (event: LambdaEvent) => answer(event)

/** For `rate(1 minute)`, with a time-out of 30 seconds or more. */
export const drain = (): Promise<unknown> => edge.drainAll(env, 25_000)
