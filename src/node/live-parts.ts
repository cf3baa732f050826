import { createAttach } from '../attach-wake.ts'
import type { Db } from '../db/port.ts'
import { checkDatabase } from '../http/health.ts'
import type { AppOptions } from '../http/context.ts'
import type { Ports } from '../ports.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { notify } from '../wakes/notify.ts'

/** What a forwarder in the same process gives the HTTP app: wakes, channels and its mode on /readyz. */
export function liveParts(
  db: Db,
  forwarder: Forwarder,
  ports: Ports,
): Pick<AppOptions, 'attach' | 'channels' | 'ready' | 'onWebhookChange'> {
  return {
    attach: createAttach(() => forwarder, { ports }),
    channels: {
      notify: (channel, payload) => notify(db, channel, payload),
      listen: (channel, options) => forwarder.listen(channel, options),
    },
    ready: async () => ({ ...(await checkDatabase(db)), mode: forwarder.mode }),
    onWebhookChange: ({ id }) => forwarder.ring(`w${id as `wh_${string}`}`),
  }
}
