import type { Clock, TimerHandle } from '../../ports.ts'

/** One timer: of several wishes the earliest counts. */
export interface Alarm {
  ring(inMs: number): void
  cancel(): void
}

export function createAlarm(clock: Clock, onRing: () => void): Alarm {
  let timer: TimerHandle | null = null
  let dueAt = Infinity

  function cancel(): void {
    if (timer !== null) clock.clearTimeout(timer)
    timer = null
    dueAt = Infinity
  }

  return {
    ring(inMs) {
      const at = clock.now() + inMs
      if (at >= dueAt) return
      cancel()
      dueAt = at
      timer = clock.setTimeout(() => {
        cancel()
        onRing()
      }, inMs)
    },
    cancel,
  }
}
