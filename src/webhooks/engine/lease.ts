import type { Clock } from '../../ports.ts'

/** A lease is trusted for this share of its length, so that a slow clock cannot overlap the next holder. */
const trustedShare = 0.9
/** From this share of its length on it is renewed: there is time to try again when that fails. */
const ageingShare = 1 / 3

/** How a lease stands by the local clock. The database's decides; this one is only ever stricter. */
export interface Lease {
  /** The statement that set it was sent at this local time. */
  renewedAt(at: number): void
  /** It should be renewed. */
  isAgeing(): boolean
  /** It can no longer be trusted. */
  isOverdue(): boolean
  /** Renew it with the next flush, whatever its age. */
  age(): void
}

/** @param leasedAt local time just before the claim was sent */
export function createLease(clock: Clock, leaseMs: number, leasedAt: number): Lease {
  return new LocalLease(clock, leaseMs, leasedAt)
}

class LocalLease implements Lease {
  readonly #clock: Clock
  readonly #leaseMs: number
  #since: number

  constructor(clock: Clock, leaseMs: number, leasedAt: number) {
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#since = leasedAt
  }

  renewedAt(at: number): void {
    this.#since = at
  }

  isAgeing(): boolean {
    return this.#passed() > this.#leaseMs * ageingShare
  }

  isOverdue(): boolean {
    return this.#passed() > this.#leaseMs * trustedShare
  }

  age(): void {
    this.#since = Math.min(this.#since, this.#clock.now() - this.#leaseMs * ageingShare - 1)
  }

  #passed(): number {
    return this.#clock.now() - this.#since
  }
}
