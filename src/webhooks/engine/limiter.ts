/** Bounds how many sends run at once, in all and to each host. */
export interface Limiter {
  /** Takes a place for a send to the host if one is free. */
  tryEnter(host: string): boolean
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
}

export function createLimiter({ total = 256, perHost = 128 }: LimiterOptions = {}): Limiter {
  const perHostNow = new Map<string, number>()
  let now = 0
  let waiting: (() => void)[] = []

  return {
    tryEnter(host) {
      const here = perHostNow.get(host) ?? 0
      if (now >= total || here >= perHost) return false
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
      waiting = []
      for (const callback of callbacks) callback()
    },
    onFree: (callback) => void waiting.push(callback),
  }
}
