import { ringDoorbell } from '../doorbell/ring-doorbell.ts'
import { isWorthRinging } from '../doorbell/worth-ringing.ts'
import type { Ports } from '../ports.ts'
import type { DoorbellSettings } from '../settings.ts'

/**
 * Rings the forwarder after a request that changed webhooks or schedules: should it sleep, it would know nothing of
 * them before its next look. Resolves at once when there is nothing to ring for; never rejects.
 */
export async function ringAfterChange(
  request: Request,
  answer: Response,
  { doorbell: { url, secret }, ports }: { doorbell: DoorbellSettings; ports: Ports },
): Promise<void> {
  if (url === null || secret === null || !answer.ok || !isWorthRinging(request)) return
  try {
    const { status } = await ringDoorbell({ url, secret, ports, ring: { streamIds: 'all' } })
    if (status !== 202) ports.log.warn({ status }, 'the doorbell was rung in vain')
  } catch (error) {
    ports.log.warn({ err: error }, 'the doorbell was rung in vain')
  }
}
