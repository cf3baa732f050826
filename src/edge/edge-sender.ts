import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import { targetPolicyOf } from '../webhooks/allowed-targets.ts'
import { createFetchSender } from '../webhooks/fetch-sender.ts'
import type { Sender } from '../webhooks/sender.ts'

/** Sends with the platform's `fetch`, to what the settings allow. */
export function edgeSender(settings: Settings, ports: Pick<Ports, 'fetch'>): Sender {
  return createFetchSender({
    fetch: (url, init) => ports.fetch(url, init),
    policy: targetPolicyOf(settings),
  })
}
