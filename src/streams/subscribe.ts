import type { Db } from '../db/port.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Clock } from '../ports.ts'
import { getOffset, saveOffset, type ConsumerId } from './consumer-offsets.ts'
import type { StoredEvent } from './event.ts'
import { findStream } from './find-stream.ts'
import { readEvents } from './read-events.ts'

/** Tells one subscription when to read again. */
export interface StreamWake {
  /**
   * Resolves `wake` when there may be something new, `poll` when it is time to look without a reason,
   * `aborted` at the end of the signal or of what is below.
   */
  wait(signal: AbortSignal): Promise<'wake' | 'poll' | 'aborted'>
  /** There was something: polls come at the short interval again. */
  active(): void
  close(): void
}

/** Attaches to the wakes of a stream, or, while it does not exist, of all; from then on none is missed (S6). */
export type AttachWake = (streamId: number | null) => StreamWake

/** Options of {@link subscribe}. */
export interface SubscribeOptions {
  /** Ends the subscription. */
  signal?: AbortSignal
  /** Only events of these types; `*` at the end matches any rest. Default: all. */
  types?: readonly string[]
  /** Begin after this offset. Default: the consumer's saved offset. */
  after?: number
  /** So many events are read ahead at most: 1 to 1000, default 100. A consumer that is slow holds back the reading. */
  buffer?: number
}

/** The events of a stream as they come, for one consumer. Ends only on abort or close. */
export interface Subscription<Event = StoredEvent> extends AsyncIterableIterator<Event> {
  /** The offset of the last event that was yielded; null before the first (S8). */
  readonly position: number | null
  /** Saves the position as the consumer's offset; before any event it does nothing (S8). Returns the saved offset. */
  save(): Promise<number | null>
  /** The next event if it is at hand or in the database now; null if there is none. */
  tryNext(): Promise<Event | null>
  /** Ends it; a `next` that waits resolves as done. */
  close(): void
}

/** What a subscription stands on. */
export interface SubscribeParts {
  db: Db
  attach: AttachWake
  clock: Clock
}

/** A database that cannot be reached is asked again after this, doubling up to the maximum. */
const retryMinMs = 50
const retryMaxMs = 2_000

/**
 * Subscribes a consumer to a stream, which need not exist yet: replays from the saved offset, then follows. It
 * outlives lost connections (S7) and works without wakes, later (N4). Nothing is read that was not asked for.
 *
 * @throws INVALID_NAME, INVALID_INPUT, OFFSET_AHEAD from the first `next`
 */
export function subscribe(
  parts: SubscribeParts,
  consumer: ConsumerId,
  options: SubscribeOptions = {},
): Subscription {
  const stop = new AbortController()
  const state: State = {
    ...{ parts, consumer, options, stop, buffer: [], after: null, position: null, wake: null },
    known: false,
    turn: Promise.resolve(),
  }
  if (options.signal?.aborted) end(state)
  else options.signal?.addEventListener('abort', () => end(state), { once: true, signal: stop.signal })

  return {
    get position() {
      return state.position
    },
    next: () => inTurn(state, () => nextEvent(state)),
    tryNext: () => inTurn(state, async () => (await takeOrRead(state)) ?? null),
    save: () => savePosition(state),
    close: () => end(state),
    async return() {
      end(state)
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

interface State {
  parts: SubscribeParts
  consumer: ConsumerId
  options: SubscribeOptions
  stop: AbortController
  buffer: StoredEvent[]
  /** Where to read on; null before the first read. */
  after: number | null
  position: number | null
  wake: StreamWake | null
  /** The wake is that of the stream itself; before, it is everybody's. */
  known: boolean
  /** Calls are served one after the other. */
  turn: Promise<unknown>
}

function end(state: State): void {
  state.stop.abort()
  state.wake?.close()
  state.buffer = []
}

function inTurn<T>(state: State, work: () => Promise<T>): Promise<T> {
  const result = state.turn.then(work)
  state.turn = result.catch(() => {})
  return result
}

async function savePosition({ parts, consumer, position }: State): Promise<number | null> {
  return position === null ? null : saveOffset(parts.db, consumer, position)
}

async function nextEvent(state: State): Promise<IteratorResult<StoredEvent>> {
  while (!state.stop.signal.aborted) {
    const event = await takeOrRead(state)
    if (event !== undefined) return { done: false, value: event }
    if (state.stop.signal.aborted) break
    if ((await state.wake?.wait(state.stop.signal)) === 'aborted') end(state)
  }
  return { done: true, value: undefined }
}

/** From the buffer, or else from one read of the database, tried again until the database answers. */
async function takeOrRead(state: State): Promise<StoredEvent | undefined> {
  let waitMs = retryMinMs
  while (!state.stop.signal.aborted) {
    try {
      if (state.buffer.length === 0) await fill(state)
      if (state.stop.signal.aborted) return undefined
      const event = state.buffer.shift()
      if (event !== undefined) state.position = event.offset
      return event
    } catch (error) {
      if (!isMillraceError(error) || !error.retryable) throw error
      await pause(state, waitMs)
      waitMs = Math.min(waitMs * 2, retryMaxMs)
    }
  }
  return undefined
}

async function fill(state: State): Promise<void> {
  const { parts, consumer, options } = state
  await attach(state)
  state.after ??= options.after ?? (await getOffset(parts.db, consumer))
  let more = true
  while (more && state.buffer.length === 0 && !state.stop.signal.aborted) {
    const range = { after: state.after, limit: bufferSize(options), types: options.types }
    const page = await readEvents(parts.db, consumer.stream, range)
    state.buffer = page.events
    state.after = page.next
    more = page.more
  }
  if (state.buffer.length > 0) state.wake?.active()
}

/** First attach, then read: what commits in between raises the wake (S6). */
async function attach(state: State): Promise<void> {
  if (state.known) return
  const { parts, consumer } = state
  state.wake ??= parts.attach(null)
  const streamId = await findStream(parts.db, consumer.stream)
  if (streamId === null || state.stop.signal.aborted) return
  const everybodys = state.wake
  state.wake = parts.attach(streamId)
  state.known = true
  everybodys.close()
}

function bufferSize({ buffer = 100 }: SubscribeOptions): number {
  if (Number.isInteger(buffer) && buffer >= 1 && buffer <= 1000) return buffer
  throw new MillraceError('INVALID_INPUT', 'buffer must be a whole number from 1 to 1000', {
    details: { field: 'buffer' },
  })
}

function pause({ parts, stop }: State, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      parts.clock.clearTimeout(timer)
      stop.signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = parts.clock.setTimeout(done, ms)
    stop.signal.addEventListener('abort', done)
  })
}
