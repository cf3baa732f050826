import type { Db, TxOption } from '../db/port.ts'
import { invalidInput, MillraceError } from '../errors/millrace-error.ts'
import { jsonTextOf } from '../json/json-text-of.ts'
import { assertSharedName } from '../schema/names.ts'
import { claimOrWait, type ClaimWait, type WaitingClaimOptions } from './claim-or-wait.ts'
import {
  listDeadLetters,
  purgeDeadLetters,
  redriveDeadLetters,
  type DeadLetter,
  type DeadLetterChoice,
  type DeadLetterPage,
  type RedriveOptions,
} from './dead-letters.ts'
import type { ClaimedMessage, Held, NewMessage } from './message.ts'
import { configureQueue, type QueueSettings } from './queue-settings.ts'
import { getQueueStats, type QueueStats } from './queue-stats.ts'
import { sendMessages, type SentMessage } from './send-messages.ts'
import {
  extendMessages,
  failMessages,
  retryMessages,
  returnMessages,
  type ExtendOptions,
  type Failure,
  type Retry,
  type RetryOutcome,
} from './settle-messages.ts'
import { createSharedAck, createSharedClaim } from './shared-calls.ts'
import { assertHandler, type WorkOptions } from './work/options.ts'
import type { HandlerContext, HandlerOutcome, Worker } from './work/work-queue.ts'

/** A message to be sent; its data becomes JSON. */
export type MessageOf<Data> = Omit<NewMessage, 'dataText'> & { data: Data }

/** A message that was claimed. */
export type ClaimedOf<Data> = ClaimedMessage & { data: Data }

/** Works one message. Returning is an ack, but for a {@link HandlerOutcome}; throwing is a retry, with the error's message kept. */
export type HandlerOf<Data> = (
  message: ClaimedOf<Data>,
  context: HandlerContext,
) => Promise<HandlerOutcome | void> | HandlerOutcome | void

/** Options of `work`, without what the store gives. */
export type HandleWorkOptions = Omit<WorkOptions, 'ports' | 'wakes'>

/** A queue. Every write takes `{ tx }`, and then counts with the caller's commit (Q3). */
export interface QueueHandle<Data> {
  readonly name: string
  /** Sends one message. See sendMessages for what it guarantees and throws. */
  send(message: MessageOf<Data>, options?: TxOption): Promise<SentMessage>
  /** Sends several, all or none. */
  sendMany(messages: readonly MessageOf<Data>[], options?: TxOption): Promise<SentMessage[]>
  /**
   * Claims messages; `nextDueMs` as claimMessages has it. With `waitMs` it waits for some where there are none. Calls
   * on this handle that are under way at the same time share statements, and so do those of `ack`.
   *
   * @throws INVALID_INPUT; WRONG_ENVIRONMENT; ABORTED by the signal, unless something was claimed; STORE_CLOSED
   */
  claim(options?: WaitingClaimOptions): Promise<{ messages: ClaimedOf<Data>[]; nextDueMs: number | null }>
  /** Finishes messages; answers for each whether its lease still held (Q1). */
  ack(items: readonly Held[], options?: TxOption): Promise<boolean[]>
  /** Gives back what was not begun: ready at once, the attempt not counted. */
  giveBack(items: readonly Held[], options?: TxOption): Promise<boolean[]>
  retry(items: readonly Retry[], options?: TxOption): Promise<RetryOutcome[]>
  extend(items: readonly Held[], options?: ExtendOptions): Promise<boolean[]>
  /** Moves messages into the dead letters. */
  fail(items: readonly Failure[], options?: TxOption): Promise<boolean[]>
  /** Works the queue until stopped, or the store is closed. See workQueue. */
  work(handler: HandlerOf<Data>, options?: HandleWorkOptions): Worker
  deadLetters(page?: DeadLetterPage): Promise<(DeadLetter & { data: Data })[]>
  redrive(options?: RedriveOptions): Promise<number[]>
  purgeDeadLetters(options?: DeadLetterChoice): Promise<number>
  configure(settings: QueueSettings, options?: TxOption): Promise<void>
  /** Undefined when the queue does not exist. */
  stats(options?: TxOption): Promise<QueueStats | undefined>
}

/** What a handle stands on. */
export interface QueueParts {
  db: Db
  /** How claims wait, with the wakes of the store. */
  claimWait: ClaimWait
  /** Starts a worker with the wakes of the store. */
  startWorker(
    queue: string,
    handler: (message: ClaimedMessage, context: HandlerContext) => ReturnType<HandlerOf<unknown>>,
    options: HandleWorkOptions,
  ): Worker
}

/**
 * A handle on a queue; makes no statement.
 *
 * @throws INVALID_NAME
 */
export function createQueueHandle<Data>(name: string, parts: QueueParts): QueueHandle<Data> {
  const { db, startWorker, claimWait } = parts
  assertSharedName('queue', name)
  const send = async (messages: readonly MessageOf<Data>[], options?: TxOption): Promise<SentMessage[]> =>
    (await sendMessages(db, name, encodeMessages(messages), options)).messages
  const claim = createSharedClaim(db, name)
  return {
    name,
    send: async (message, options) => (await send([message], options))[0]!,
    sendMany: send,
    async claim(options = {}) {
      const assertNotAborted = (): void => {
        if (options.signal?.aborted) throw new MillraceError('ABORTED', 'the claim was aborted')
      }
      assertNotAborted()
      const { messages, nextDueMs } = await claimOrWait(claim, name, options, claimWait)
      if (messages.length === 0) assertNotAborted()
      return { messages: messages.map(decode<Data, ClaimedMessage>), nextDueMs }
    },
    ack: createSharedAck(db, name),
    giveBack: (items, options) => returnMessages(db, name, items, options),
    retry: (items, options) => retryMessages(db, name, items, options),
    extend: (items, options) => extendMessages(db, name, items, options),
    fail: (items, options) => failMessages(db, name, items, options),
    work(handler, options = {}) {
      assertHandler(handler)
      const decoding = (message: ClaimedMessage, context: HandlerContext): ReturnType<HandlerOf<Data>> =>
        handler(decode<Data, ClaimedMessage>(message), context)
      return startWorker(name, decoding, options)
    },
    deadLetters: async (page) =>
      (await listDeadLetters(db, name, page)).map((letter) => decode<Data, DeadLetter>(letter)),
    redrive: (options) => redriveDeadLetters(db, name, options),
    purgeDeadLetters: (options) => purgeDeadLetters(db, name, options),
    configure: (settings, options) => configureQueue(db, name, settings, options),
    stats: (options) => getQueueStats(db, name, options),
  }
}

/**
 * Messages with their data as JSON text.
 *
 * @throws INVALID_INPUT when they are no list of messages, or data has no JSON form; `details.field` names which
 */
export function encodeMessages(messages: readonly MessageOf<unknown>[]): NewMessage[] {
  if (!Array.isArray(messages)) throw invalidInput('messages', 'must be a list of messages')
  return messages.map((message: MessageOf<unknown>, index) =>
    encode(message, messages.length > 1 ? index : null),
  )
}

/** @param index names the message in errors; null: it is alone */
function encode(message: MessageOf<unknown>, index: number | null): NewMessage {
  if (typeof message !== 'object' || message === null)
    throw invalidInput(index === null ? 'message' : `[${index}]`, 'must be a message, an object with data')
  const { data, ...rest } = message
  return { ...rest, dataText: jsonTextOf(data, index === null ? 'data' : `[${index}].data`) }
}

/** In place: what was read is nobody else's yet, and a copy of its dozen fields takes as long as parsing the data. */
function decode<Data, Stored extends { dataText: string }>(stored: Stored): Stored & { data: Data } {
  const decoded = stored as Stored & { data: Data }
  decoded.data = JSON.parse(stored.dataText) as Data
  return decoded
}
