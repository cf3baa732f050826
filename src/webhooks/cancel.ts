import { createLinkedList, type Link } from './linked-list.ts'

/** Breaks off attempts, any number of them at once. An AbortSignal would do, but one for each attempt is felt. */
export interface Cancel {
  readonly cancelled: boolean
  /** Calls every callback once. */
  cancel(): void
  /** Takes a callback for a later {@link Cancel.cancel}. */
  add(callback: () => void): Link<() => void>
  delete(link: Link<() => void>): void
}

export function createCancel(): Cancel {
  const callbacks = createLinkedList<() => void>()
  let cancelled = false
  return {
    get cancelled() {
      return cancelled
    },
    cancel() {
      cancelled = true
      while (callbacks.first !== null) {
        const { value } = callbacks.first
        callbacks.remove(callbacks.first)
        value()
      }
    },
    add: (callback) => callbacks.add(callback),
    delete: (link) => callbacks.remove(link),
  }
}

/** One that is cancelled when the signal aborts. */
export function cancelOn(signal: AbortSignal): Cancel {
  const cancel = createCancel()
  if (signal.aborted) cancel.cancel()
  else signal.addEventListener('abort', () => cancel.cancel(), { once: true })
  return cancel
}
