import { isMillraceError, type MillraceError } from '../errors/millrace-error.ts'
import type { EventPage, FollowOptions, ReadEvent, ReadOptions } from './types.ts'

/** Below the 30 s that the server allows, and below the idle time-outs of most proxies. */
const defaultWaitSeconds = 25
const defaultPollMs = 1000
const firstRetryMs = 100
const lastRetryMs = 2000

/** Reads one page of what is followed. */
export type ReadPage<Events extends object> = (options: ReadOptions) => Promise<EventPage<Events>>

/**
 * The events after an offset, and on and on as they come, until the signal aborts. A server that is
 * away for a while is waited for; one that answers without waiting is asked again after `pollMs`.
 *
 * @throws whatever reading throws and trying again cannot help
 */
export async function* follow<Events extends object>(
  read: ReadPage<Events>,
  options: FollowOptions,
): AsyncGenerator<ReadEvent<Events>, void, undefined> {
  const { signal, pollMs = defaultPollMs } = options
  const ask = createAsking(read, options)
  let after = options.after ?? 0
  while (!isAborted(signal)) {
    const askedAt = performance.now()
    const page = await ask(after)
    if (page === undefined) return
    yield* page.events
    const idle = page.events.length === 0 && page.next <= after
    after = Math.max(after, page.next)
    if (idle) await sleep(pollMs - (performance.now() - askedAt), signal)
  }
}

/** Asks until there is an answer; undefined: the signal aborted. */
function createAsking<Events extends object>(read: ReadPage<Events>, options: FollowOptions) {
  const { limit, types, signal, waitSeconds = defaultWaitSeconds } = options
  let canWait = true
  let failures = 0

  async function overcome(error: unknown): Promise<void> {
    if (canWait && isWaitRefusal(error)) {
      canWait = false
      return
    }
    if (!isPassing(error)) throw error
    if (failures === 0) options.onInterrupted?.(error)
    failures += 1
    await sleep(Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs), signal)
  }

  return async (after: number): Promise<EventPage<Events> | undefined> => {
    while (!isAborted(signal)) {
      try {
        const page = await read({ after, limit, types, signal, ...(canWait ? { waitSeconds } : {}) })
        if (failures > 0) options.onResumed?.()
        failures = 0
        return page
      } catch (error) {
        if (isAborted(signal)) return undefined
        await overcome(error)
      }
    }
    return undefined
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

function isWaitRefusal(error: unknown): boolean {
  return isMillraceError(error) && error.code === 'INVALID_INPUT' && error.details.field === 'wait'
}

/** What a restart of the server or its database looks like from here. */
function isPassing(error: unknown): error is MillraceError {
  return isMillraceError(error) && (error.retryable || error.code === 'STORE_CLOSED')
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms <= 0 || isAborted(signal)) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}
