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
  return new Callbacks()
}

class Callbacks implements Cancel {
  cancelled = false
  readonly #callbacks = createLinkedList<() => void>()

  cancel(): void {
    this.cancelled = true
    for (let callback = this.#callbacks.take(); callback !== undefined; callback = this.#callbacks.take())
      callback()
  }

  add(callback: () => void): Link<() => void> {
    return this.#callbacks.add(callback)
  }

  delete(link: Link<() => void>): void {
    this.#callbacks.remove(link)
  }
}

/** One that is cancelled when the signal aborts. */
export function cancelOn(signal: AbortSignal): Cancel {
  const cancel = createCancel()
  if (signal.aborted) cancel.cancel()
  else signal.addEventListener('abort', () => cancel.cancel(), { once: true })
  return cancel
}
