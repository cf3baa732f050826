import type { Clock } from '../../ports.ts'
import type { ClaimedWebhook } from './claim-webhooks.ts'

/** How long a lane may act on what its claim brought: until a secret stops signing, or another begins to. */
export interface Validity {
  /** The database says which claim or change of the webhook was the last. */
  lastChange(fence: number): void
  /** Milliseconds until it ends; 0: it has ended; Infinity: no end is known. */
  leftMs(): number
  /** Milliseconds that what was being sent at the end has left. */
  graceMs(): number
}

/**
 * @param leasedAt local time just before the claim was sent
 * @param graceMs what was being sent at the end gets so long
 */
export function createValidity(
  clock: Clock,
  { fence, secretsForMs }: Pick<ClaimedWebhook, 'fence' | 'secretsForMs'>,
  leasedAt: number,
  graceMs: number,
): Validity {
  let endsAt = secretsForMs === null ? Infinity : leasedAt + secretsForMs
  // nearly every event asks, and nearly no webhook has an end
  const passed = (): number => (endsAt === Infinity ? -Infinity : clock.now() - endsAt)
  return {
    lastChange(last) {
      if (last !== fence) endsAt = Math.min(endsAt, clock.now())
    },
    leftMs: () => Math.max(0, -passed()),
    graceMs: () => Math.max(0, graceMs - passed()),
  }
}
