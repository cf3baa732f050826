// What is due, once a minute. A scheduled function may take 30 seconds.
import { edge, env } from '../millrace.ts'

export const config = { schedule: '* * * * *' }

export default async function handler(): Promise<void> {
  await edge.drainAll(env, 25_000)
}
