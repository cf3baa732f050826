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
  /** Calls back once, when a place for the host may have come free. */
  onFree(host: string, callback: () => void): void
  /** No place will come free any more: the platform's requests are spent. */
  readonly spent: boolean
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
  const waiting = new Map<string, Set<() => void>>()
  let now = 0

  /** Wakes as many as there are places: a thousand that fight over one would cost a thousand looks each time. */
  function wake(host: string, places: number): void {
    const callbacks = waiting.get(host)
    if (callbacks === undefined) return
    for (const callback of [...callbacks].slice(0, places)) {
      callbacks.delete(callback)
      callback()
    }
    if (callbacks.size === 0 && waiting.get(host) === callbacks) waiting.delete(host)
  }

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
      const wasFull = now >= total
      now--
      const here = (perHostNow.get(host) ?? 1) - 1
      if (here === 0) perHostNow.delete(host)
      else perHostNow.set(host, here)
      // with nothing on its way nobody else would wake those who wait
      if (now === 0) for (const name of [...waiting.keys()]) wake(name, Infinity)
      else wake(host, Math.min(perHost - here, total - now))
      const other = wasFull ? [...waiting.keys()].find((name) => name !== host) : undefined
      if (other !== undefined) wake(other, 1)
    },
    get spent() {
      return allowance.low
    },
    onFree(host, callback) {
      const callbacks = waiting.get(host) ?? new Set()
      waiting.set(host, callbacks.add(callback))
    },
  }
}
