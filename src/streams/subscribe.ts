import type { Db } from '../db/port.ts'
import { isMillraceError, MillraceError } from '../errors/millrace-error.ts'
import type { Clock } from '../ports.ts'
import { sleep } from '../sleep.ts'
import { within } from '../within.ts'
import { getOffset, saveOffset, type ConsumerId } from './consumer-offsets.ts'
import type { StoredEvent } from './event.ts'
import { findStream } from './find-stream.ts'
import { createHeldPace, type HeldPace } from './held-pace.ts'
import { readEvents, type ReadRange } from './read-events.ts'

/** Tells one subscription when to read again. */
export interface StreamWake {
  /**
   * Resolves `wake` when there may be something new, `poll` when it is time to look without a reason, at the
   * latest after `withinMs` if that is given, `aborted` at the end of the signal or of what is below.
   */
  wait(signal: AbortSignal, withinMs?: number): Promise<'wake' | 'poll' | 'aborted'>
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
  /**
   * Saves the position as the consumer's offset; before any event it does nothing (S8). Returns the saved offset.
   *
   * @throws STORE_CLOSED once the store was closed
   */
  save(): Promise<number | null>
  /**
   * The next event if it is at hand or in the database now; null if there is none.
   *
   * @throws STORE_CLOSED once the store was closed
   */
  tryNext(): Promise<Event | null>
  /** Ends it; a `next` that waits resolves as done. */
  close(): void
}

/** What a subscription stands on. */
export interface SubscribeParts {
  db: Db
  attach: AttachWake
  clock: Clock
  /** Throws STORE_CLOSED once the store was closed. */
  assertOpen?: () => void
}

/** A database that cannot be reached is asked again after this, doubling up to the maximum. */
const retryMinMs = 50
const retryMaxMs = 2_000
/**
 * A connection that has fallen silent gives no answer, and no error for a quarter of an hour. A read costs
 * nothing to make again, on another one; each time it is given twice as long, since the database may be slow.
 */
const answerMinMs = 8_000
const answerMaxMs = 60_000

/**
 * Subscribes a consumer to a stream, which need not exist yet: replays from the saved offset, then follows. It
 * outlives lost connections (S7) and works without wakes, later (N4). Nothing is read that was not asked for.
 *
 * @throws INVALID_NAME, INVALID_INPUT, OFFSET_AHEAD, STORE_CLOSED from the first `next`
 */
export function subscribe(
  parts: SubscribeParts,
  consumer: ConsumerId,
  options: SubscribeOptions = {},
): Subscription {
  return subscribeDecoded(parts, consumer, options, (event) => event)
}

/**
 * As {@link subscribe}, yielding what `decode` makes of each event. Where it throws, the event counts as not
 * yielded: `position` stays before it, and the next call meets it again.
 */
export function subscribeDecoded<Event>(
  parts: SubscribeParts,
  consumer: ConsumerId,
  options: SubscribeOptions,
  decode: (event: StoredEvent) => Event,
): Subscription<Event> {
  const state: State = {
    ...{ parts, consumer, options, stop: new AbortController(), storeClosed: false },
    ...{ buffer: [], after: null, position: null, wake: null, known: false },
    ...{ held: createHeldPace(), turn: Promise.resolve(), answerMs: answerMinMs },
  }
  const { stop } = state
  if (options.signal?.aborted) end(state)
  else options.signal?.addEventListener('abort', () => end(state), { once: true, signal: stop.signal })
  const take = (): Promise<Event | undefined> => takeOrRead(state, decode)
  return {
    get position() {
      return state.position
    },
    next: () => inTurn(state, () => nextEvent(state, take)),
    tryNext: () =>
      inTurn(state, async () => {
        const event = await take()
        if (state.storeClosed) throw storeClosed()
        return event ?? null
      }),
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
  /** It ended because the store below it did. */
  storeClosed: boolean
  buffer: StoredEvent[]
  /** Where to read on; null before the first read. */
  after: number | null
  position: number | null
  wake: StreamWake | null
  /** The wake is that of the stream itself; before, it is everybody's. */
  known: boolean
  held: HeldPace
  /** Calls are served one after the other. */
  turn: Promise<unknown>
  /** How long a read may take. */
  answerMs: number
}

function end(state: State): void {
  state.stop.abort()
  detach(state)
  state.buffer = []
}

function endWithStore(state: State): void {
  state.storeClosed = true
  end(state)
}

function storeClosed(): MillraceError {
  return new MillraceError('STORE_CLOSED', 'the store was closed')
}

function inTurn<T>(state: State, work: () => Promise<T>): Promise<T> {
  const result = state.turn.then(work)
  state.turn = result.catch(() => {})
  return result
}

async function savePosition({ parts, consumer, position }: State): Promise<number | null> {
  if (position !== null) return saveOffset(parts.db, consumer, position)
  parts.assertOpen?.()
  return null
}

async function nextEvent<Event>(
  state: State,
  take: () => Promise<Event | undefined>,
): Promise<IteratorResult<Event>> {
  const { signal } = state.stop
  while (!signal.aborted) {
    const event = await take()
    if (signal.aborted) break
    if (event !== undefined) return { done: false, value: event }
    const why = await state.wake?.wait(signal, state.held.waitMs())
    if (why === 'aborted' && !signal.aborted) endWithStore(state)
  }
  return { done: true, value: undefined }
}

/** From the buffer, or else from one read of the database, tried again until the database answers. */
async function takeOrRead<Event>(
  state: State,
  decode: (event: StoredEvent) => Event,
): Promise<Event | undefined> {
  let waitMs = retryMinMs
  while (!state.stop.signal.aborted) {
    try {
      if (state.buffer.length === 0) await fill(state)
      return yieldFirst(state, decode)
    } catch (error) {
      if (state.stop.signal.aborted) return undefined
      if (isMillraceError(error) && error.code === 'STORE_CLOSED' && state.wake !== null) {
        endWithStore(state)
        return undefined
      }
      if (!isMillraceError(error) || !error.retryable) {
        // whoever gives up now never calls `return`
        detach(state)
        throw error
      }
      await sleep(state.parts.clock, waitMs, state.stop.signal)
      waitMs = Math.min(waitMs * 2, retryMaxMs)
    }
  }
  return undefined
}

/** The position moves only once the event is decoded: what failed was not yielded (S8). */
function yieldFirst<Event>(state: State, decode: (event: StoredEvent) => Event): Event | undefined {
  const [first] = state.buffer
  if (first === undefined) return undefined
  const event = decode(first)
  state.buffer.shift()
  state.position = first.offset
  return event
}

async function fill(state: State): Promise<void> {
  const { parts, consumer, options } = state
  const limit = bufferSize(options)
  await attach(state)
  state.after ??= options.after ?? (await answerTo(state, getOffset(parts.db, consumer)))
  let more = true
  while (more && state.buffer.length === 0 && !state.stop.signal.aborted) {
    const range: ReadRange = { after: state.after, limit, types: options.types }
    const page = await answerTo(state, readEvents(parts.db, consumer.stream, range))
    if (state.stop.signal.aborted) return
    state.buffer = page.events
    state.after = page.next
    state.held.saw(page)
    more = page.more
  }
  if (state.buffer.length > 0) state.wake?.active()
}

/** What the database answers, as long as it is worth waiting for; at the end of the subscription it is not. */
async function answerTo<T>(state: State, question: Promise<T>): Promise<T> {
  const bounds = { ms: state.answerMs, what: 'reading the stream', signal: state.stop.signal }
  state.answerMs = Math.min(state.answerMs * 2, answerMaxMs)
  const answer = await within(state.parts.clock, bounds, question)
  state.answerMs = answerMinMs
  return answer
}

/** First attach, then read: what commits in between raises the wake (S6). */
async function attach(state: State): Promise<void> {
  if (state.known && state.wake !== null) return
  const { parts, consumer } = state
  state.wake ??= parts.attach(null)
  const streamId = await answerTo(state, findStream(parts.db, consumer.stream))
  if (streamId === null || state.stop.signal.aborted) return
  const everybodys = state.wake
  state.wake = parts.attach(streamId)
  state.known = true
  everybodys.close()
}

function detach(state: State): void {
  state.wake?.close()
  state.wake = null
  state.known = false
}

function bufferSize({ buffer = 100 }: SubscribeOptions): number {
  if (Number.isInteger(buffer) && buffer >= 1 && buffer <= 1000) return buffer
  throw new MillraceError('INVALID_INPUT', 'buffer must be a whole number from 1 to 1000', {
    details: { field: 'buffer' },
  })
}
