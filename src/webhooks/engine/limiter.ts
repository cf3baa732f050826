import { unlimited, type Allowance } from './allowance.ts'

/** Bounds how many sends run at once, in all and to each host. */
export interface Limiter {
  /**
   * Takes a place for a send to the host if one is free.
   *
   * @param alone the webhook has nothing else on its way: it gets a place beyond the bounds, so that
   *   webhooks that hang cannot hold up all others (W4)
   */
  tryEnter(host: string, alone: boolean): boolean
  leave(host: string): void
  /** Calls back once, when a place may have come free. */
  onFree(callback: () => void): void
}

/** What {@link createLimiter} takes. */
export interface LimiterOptions {
  /** Sends at once, whatever their host. Default 256: more only queues in the kernel. */
  total?: number
  /** Sends at once to one host. Default 128. */
  perHost?: number
  /** Every send is taken off it, and none begins once it is low. */
  allowance?: Allowance
}

export function createLimiter(options: LimiterOptions = {}): Limiter {
  const { total = 256, perHost = 128, allowance = unlimited } = options
  const perHostNow = new Map<string, number>()
  let now = 0
  let waiting = new Set<() => void>()

  return {
    tryEnter(host, alone) {
      const here = perHostNow.get(host) ?? 0
      if (allowance.low) return false
      // a platform that counts requests counts connections too: there the bounds hold for everyone
      if ((now >= total || here >= perHost) && !(alone && allowance === unlimited)) return false
      if (!allowance.spend()) return false
      now++
      perHostNow.set(host, here + 1)
      return true
    },
    leave(host) {
      now--
      const here = (perHostNow.get(host) ?? 1) - 1
      if (here === 0) perHostNow.delete(host)
      else perHostNow.set(host, here)
      const callbacks = waiting
      waiting = new Set()
      for (const callback of callbacks) callback()
    },
    onFree: (callback) => void waiting.add(callback),
  }
}
