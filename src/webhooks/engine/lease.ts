import type { Clock } from '../../ports.ts'

/** A lease is trusted for this share of its length, so that a slow clock cannot overlap the next holder. */
const trustedShare = 0.9

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
  let since = leasedAt
  const passed = (): number => clock.now() - since
  return {
    renewedAt: (at) => void (since = at),
    isAgeing: () => passed() > leaseMs / 3,
    isOverdue: () => passed() > leaseMs * trustedShare,
    age: () => void (since = Math.min(since, clock.now() - leaseMs / 3 - 1)),
  }
}
