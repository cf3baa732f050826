import type { Hono } from 'hono'
import { isWorthRinging } from '../doorbell/worth-ringing.ts'
import type { Forwarder } from '../wakes/forwarder.ts'

/**
 * An app beside a forwarder in one process. While that sleeps it hears no NOTIFY, so what changed webhooks or
 * schedules here is told to it directly.
 */
export function ringAfterChange(app: Pick<Hono, 'fetch'>, forwarder: Forwarder): Pick<Hono, 'fetch'> {
  return {
    async fetch(request, ...rest) {
      const answer = await app.fetch(request, ...rest)
      if (forwarder.mode === 'sleeping' && answer.ok && isWorthRinging(request)) forwarder.ring('all')
      return answer
    },
  }
}

/** As {@link ringAfterChange}, for publishes. */
export function ringAfterPublish(forwarder: Forwarder): (info: { streamId: number }) => void {
  return ({ streamId }) => {
    if (forwarder.mode === 'sleeping') forwarder.ring(`s${streamId}`)
  }
}
