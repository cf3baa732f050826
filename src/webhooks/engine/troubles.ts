import { isMillraceError } from '../../errors/millrace-error.ts'
import type { Ports } from '../../ports.ts'

/** Database calls that fail for webhooks, again and again. */
export interface Troubles {
  /**
   * Says it in the log, the first time at once and then ever more rarely.
   *
   * @returns how many milliseconds the webhook pauses
   */
  met(error: unknown, webhookId: string): number
}

/** A database that was away is used again within a second of its return. */
const shortestPauseMs = 1_000
/** What only an operator can set right is looked at once a minute. */
const longestPauseMs = 60_000
const shortestSilenceMs = 60_000
const longestSilenceMs = 3_600_000
/** What has not come again for so long, beyond its pause, is over. */
const overAfterMs = 10_000
/** Webhooks in trouble that are kept in mind. */
const kept = 10_000

interface Trouble {
  pauseMs: number
  lastAt: number
  silentUntil: number
  silenceMs: number
}

export function createTroubles({ clock, log }: Pick<Ports, 'clock' | 'log'>): Troubles {
  const known = new Map<string, Trouble>()

  function recall(id: string, now: number): Trouble {
    const trouble = known.get(id)
    if (trouble !== undefined && now - trouble.lastAt <= trouble.pauseMs + overAfterMs) return trouble
    return { pauseMs: shortestPauseMs / 2, lastAt: now, silentUntil: now, silenceMs: shortestSilenceMs / 2 }
  }

  return {
    met(error, webhookId) {
      const now = clock.now()
      const code = isMillraceError(error) ? error.code : 'INTERNAL'
      const id = `${webhookId} ${code}`
      const trouble = recall(id, now)
      trouble.lastAt = now
      // a database that cannot be reached may be back at any moment; an offset beyond its end stays there
      trouble.pauseMs =
        code === 'OFFSET_AHEAD' ? Math.min(trouble.pauseMs * 2, longestPauseMs) : shortestPauseMs
      if (now >= trouble.silentUntil) {
        trouble.silenceMs = Math.min(trouble.silenceMs * 2, longestSilenceMs)
        trouble.silentUntil = now + trouble.silenceMs
        log.warn({ err: error, webhookId }, code === 'OFFSET_AHEAD' ? restored : waiting)
      }
      if (known.size >= kept) known.clear()
      known.set(id, trouble)
      return trouble.pauseMs
    },
  }
}

const waiting = 'a webhook waits for the database'
const restored =
  'a webhook has come further than the database, which may have been restored: move it with `millrace webhooks seek`'
