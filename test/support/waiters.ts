/** Waits for a condition that is looked at only when something has changed. */
export interface Waiters {
  /** Something has changed. */
  changed(): void
  /**
   * Resolves as soon as `condition` holds.
   *
   * @param describe what to say about the state when the time is up
   */
  until(condition: () => boolean, timeoutMs: number, describe: () => string): Promise<void>
}

export function createWaiters(): Waiters {
  const waiting = new Set<() => void>()
  return {
    changed() {
      for (const check of waiting) check()
    },
    until(condition, timeoutMs, describe) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check)
          reject(new Error(`not within ${timeoutMs} ms: ${describe()}`))
        }, timeoutMs)
        const check = (): void => {
          if (!condition()) return
          clearTimeout(timer)
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      })
    },
  }
}
