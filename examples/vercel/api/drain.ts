// What is due, once a minute: the cron of vercel.json calls it, with CRON_SECRET as its bearer token.
import { edge, env } from '../millrace.ts'

export const config = { runtime: 'edge' }

export default async function handler(request: Request): Promise<Response> {
  const secret = process.env.CRON_SECRET
  const sent = request.headers.get('authorization')
  if (!secret || sent !== `Bearer ${secret}`) return new Response('unauthorized\n', { status: 401 })
  // an answer has to begin within 25 s
  await edge.drainAll(env, 20_000)
  return new Response('drained\n')
}
