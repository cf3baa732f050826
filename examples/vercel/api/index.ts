// Every request of the API: vercel.json rewrites them all to here.
import type { Invocation } from 'millrace/edge'
import { edge, env } from '../millrace.ts'

export const config = { runtime: 'edge' }

export default function handler(request: Request, context: Invocation): Promise<Response> {
  return edge.fetch(request, env, context)
}
