import { createAttach } from '../attach-wake.ts'
import { createClaimWait } from '../attach-work.ts'
import type { Db } from '../db/port.ts'
import type { AppOptions } from '../http/context.ts'
import type { Ports } from '../ports.ts'
import { notify } from '../wakes/notify.ts'
import type { PollSettings } from './pace.ts'
import { readiness } from './readiness.ts'
import type { RunningDelivery } from './start-delivery.ts'

/** What delivery in the same process gives the HTTP app: wakes, channels, its mode, metrics and test events. */
export function liveParts(
  db: Db,
  running: Pick<RunningDelivery, 'forwarder'> & Partial<RunningDelivery>,
  { ports, poll }: { ports: Ports; poll: PollSettings },
): Pick<
  AppOptions,
  'attach' | 'claimWait' | 'channels' | 'ready' | 'onWebhookChange' | 'metrics' | 'delivery'
> {
  const { forwarder, metrics, delivery } = running
  const pace = { ports, pollMinMs: poll.minMs, pollMaxMs: poll.maxMs }
  return {
    delivery,
    ...(metrics === undefined ? {} : { metrics: () => metrics.text() }),
    attach: createAttach(() => forwarder, pace),
    claimWait: createClaimWait(db, () => forwarder, pace),
    channels: {
      notify: (channel, payload) => notify(db, channel, payload),
      listen: (channel, options) => forwarder.listen(channel, options),
    },
    ready: () => readiness(db, forwarder),
    onWebhookChange: ({ id }) => forwarder.ring(`w${id as `wh_${string}`}`),
  }
}
