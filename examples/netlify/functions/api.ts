// Every request of the API.
import type { Invocation } from 'millrace/edge'
import { edge, env } from '../millrace.ts'

export const config = { path: '/*' }

export default function handler(request: Request, context: Invocation): Promise<Response> {
  return edge.fetch(request, env, context)
}
