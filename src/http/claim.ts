import * as v from 'valibot'
import { parseShape } from '../json/shape.ts'
import { claimOrWait, type ClaimWait } from '../queues/claim-or-wait.ts'
import { returnMessages } from '../queues/settle-messages.ts'
import { createSharedClaims } from '../queues/shared-calls.ts'
import { createPollingAttach } from '../streams/poll-wake.ts'
import { readOptionalObject } from './body.ts'
import type { AppOptions } from './context.ts'
import { queryOf } from './query.ts'
import type { Handler } from './resource.ts'
import { jsonText, withData } from './verbatim.ts'

const shape = v.strictObject({
  limit: v.optional(v.number()),
  types: v.optional(v.array(v.string())),
  leaseMs: v.optional(v.number()),
  waitMs: v.optional(v.number()),
})

/**
 * `POST /v1/queues/{queue}/claim`. With `waitMs` an answer that would be empty is held back until there is
 * something; it goes early when the host shuts down. What was claimed for a client that is gone is given back.
 */
export function claim(options: AppOptions): Handler<'/v1/queues/:queue/claim'> {
  const { db, shutdown } = options
  const { claimWait = pollingWait(options) } = options
  const claimShared = createSharedClaims(db)
  return async (c) => {
    queryOf(c.req.raw, [])
    const chosen = parseShape(shape, await readOptionalObject(c.req.raw), 'body')
    const queue = c.req.param('queue')
    const gone = c.req.raw.signal
    const signal = shutdown === undefined ? gone : AbortSignal.any([gone, shutdown])
    const { messages, nextDueMs } = await claimOrWait(
      (claiming) => claimShared(queue, claiming),
      queue,
      { ...chosen, signal },
      claimWait,
    )
    if (gone.aborted) await returnMessages(db, queue, messages)
    return jsonText(c, `{"messages":[${messages.map(withData).join(',')}],"nextDueMs":${nextDueMs}}`)
  }
}

/** As those poll who wait for events. */
function pollingWait({ ports: { clock } }: AppOptions): ClaimWait {
  const attach = createPollingAttach(clock)
  return {
    clock,
    async attach() {
      const polls = attach(null)
      return {
        wait: ({ signal = new AbortController().signal, timeoutMs }) => polls.wait(signal, timeoutMs),
        close: () => polls.close(),
      }
    },
  }
}
