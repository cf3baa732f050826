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
  claim: Pick<ClaimedWebhook, 'fence' | 'secretsForMs'>,
  leasedAt: number,
  graceMs: number,
): Validity {
  return new ClaimValidity(clock, claim, leasedAt, graceMs)
}

class ClaimValidity implements Validity {
  readonly #clock: Clock
  readonly #fence: number
  readonly #graceMs: number
  #endsAt: number

  constructor(
    clock: Clock,
    { fence, secretsForMs }: Pick<ClaimedWebhook, 'fence' | 'secretsForMs'>,
    leasedAt: number,
    graceMs: number,
  ) {
    this.#clock = clock
    this.#fence = fence
    this.#graceMs = graceMs
    this.#endsAt = secretsForMs === null ? Infinity : leasedAt + secretsForMs
  }

  lastChange(last: number): void {
    if (last !== this.#fence) this.#endsAt = Math.min(this.#endsAt, this.#clock.now())
  }

  leftMs(): number {
    return Math.max(0, -this.#passed())
  }

  graceMs(): number {
    return Math.max(0, this.#graceMs - this.#passed())
  }

  /** Nearly every event asks, and nearly no webhook has an end. */
  #passed(): number {
    return this.#endsAt === Infinity ? -Infinity : this.#clock.now() - this.#endsAt
  }
}
