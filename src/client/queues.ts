import { bodyOf, bodyWithData, listWithData, type DataInput } from './data.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions, PageOptions } from './types.ts'

/** A message to send. Units and defaults are those of the library's. */
export type NewMessage = DataInput & {
  type?: string | null
  /** Messages of one key are worked one after the other. */
  key?: string | null
  headers?: Record<string, string> | null
  /** Smaller is claimed first. Default 0. */
  priority?: number
  delayMs?: number
  /** RFC 3339 with a zone; not with `delayMs`. */
  at?: string
  /** Default 10. */
  maxAttempts?: number
  /** Default 30,000. */
  leaseMs?: number
  backoff?: { baseMs?: number; factor?: number; maxMs?: number }
  dedupeKey?: string | null
  dedupeWindowMs?: number
}

/** What became of a message that was sent. */
export interface SentMessage {
  id: number
  /** Its dedupe key was taken: `id` is that of the one that holds it. */
  duplicate: boolean
}

/** What a settle names. */
export interface Held {
  id: number
  /** The token that the claim gave. */
  lease: string
}

/** A message that was claimed. */
export interface ClaimedMessage extends Held {
  attempt: number
  maxAttempts: number
  leaseMs: number
  priority: number
  type: string | null
  key: string | null
  headers: Record<string, string> | null
  /** ISO 8601, UTC. */
  sentAt: string
  lastError: string | null
  data: unknown
  /** The data as it was sent, byte for byte. */
  dataText: string
}

/** What became of a settle: `held` false means that another has the message since, and nothing was changed. */
export interface Settled {
  id: number
  held: boolean
  /** Of a retry: it was the last attempt, and the message died. */
  dead?: boolean
}

/** A dead letter. */
export interface DeadLetter {
  id: number
  type: string | null
  key: string | null
  headers: Record<string, string> | null
  priority: number
  attempts: number
  maxAttempts: number
  sentAt: string
  diedAt: string
  reason: string
  data: unknown
  dataText: string
}

/** A queue and what is in it. */
export interface QueueStats {
  name: string
  ready: number
  delayed: number
  blocked: number
  leased: number
  done: number
  dead: number
  oldestReadyAt: string | null
  retainFinishedMs: number | null
}

/** What a claim takes. */
export interface ClaimOptions {
  /** At most so many: default 1, at most 1000. */
  limit?: number
  /** Only messages of these types. Default all. */
  types?: readonly string[]
  /** How long they are held. Default: what each message says. */
  leaseMs?: number
  /** How long to wait for one where there is none: 0 to 30,000. Default 0. */
  waitMs?: number
}

/** A queue at the server. */
export interface QueueClient {
  readonly name: string
  /** @throws INVALID_INPUT, INVALID_NAME, INVALID_JSON, BODY_TOO_LARGE */
  send(message: NewMessage, options?: CallOptions): Promise<SentMessage>
  /** Sends 1 to 10,000, all or none. */
  sendMany(messages: readonly NewMessage[], options?: CallOptions): Promise<SentMessage[]>
  /**
   * Takes messages to work on, waiting at most `waitMs` (0 to 30,000, default 0) where there are none; `nextDueMs`
   * tells when more may be due, null: unknown.
   *
   * @throws INVALID_INPUT, WRONG_ENVIRONMENT
   */
  claim(
    options?: ClaimOptions & CallOptions,
  ): Promise<{ messages: ClaimedMessage[]; nextDueMs: number | null }>
  ack(items: readonly Held[], options?: CallOptions): Promise<Settled[]>
  /** Gives back what was not begun: no attempt is counted. */
  giveBack(items: readonly Held[], options?: CallOptions): Promise<Settled[]>
  retry(
    items: readonly (Held & { delayMs?: number; error?: string })[],
    options?: CallOptions,
  ): Promise<Settled[]>
  extend(items: readonly Held[], options?: { leaseMs?: number } & CallOptions): Promise<Settled[]>
  fail(items: readonly (Held & { reason: string })[], options?: CallOptions): Promise<Settled[]>
  /** @throws NOT_FOUND */
  stats(options?: CallOptions): Promise<QueueStats>
  /** How long finished messages are kept; null: not at all. */
  configure(settings: { retainFinishedMs: number | null }, options?: CallOptions): Promise<void>
  deadLetters(options?: PageOptions<number>): Promise<{ dead: DeadLetter[]; next: number | null }>
  /** Sends dead letters again; returns the ids of those sent. */
  redrive(options?: { ids?: readonly number[]; limit?: number } & CallOptions): Promise<number[]>
  /** Deletes dead letters, by default all; returns how many. */
  purge(options?: { ids?: readonly number[] } & CallOptions): Promise<number>
}

/** @throws INVALID_NAME for names that a URL cannot carry */
export function createQueue(send: Send, name: string): QueueClient {
  const path = `/v1/queues/${segment('queue', name)}`
  const post = (to: string, body: string | undefined, { signal }: CallOptions = {}) =>
    send({ method: 'POST', path: `${path}/${to}`, ...(body === undefined ? {} : { body }), signal })
  const settle = async (to: string, items: readonly Held[], fields: string[], options?: CallOptions) => {
    // a message that was claimed may be given as it is, and has more than the server takes
    const chosen = ['id', 'lease', ...fields]
    const texts = items.map((item, index) => bodyOf(chosenOf(item, chosen), `[${index}].`))
    const body = `[${texts.join(',')}]`
    return jsonOf<{ results: Settled[] }>(await post(to, body, options)).results
  }
  return {
    name,
    send: async (message, options) => jsonOf(await post('messages', bodyWithData(message), options)),
    async sendMany(messages, options) {
      const texts = messages.map((message, index) => bodyWithData(message, `[${index}].`))
      const answer = await post('messages', `[${texts.join(',')}]`, options)
      return jsonOf<{ messages: SentMessage[] }>(answer).messages
    },
    async claim({ signal, ...chosen } = {}) {
      const { waitMs = 0 } = chosen
      const body = bodyOf(chosen)
      const answer = await send({ method: 'POST', path: `${path}/claim`, body, signal, waitMs })
      const { nextDueMs } = jsonOf<{ nextDueMs: number | null }>(answer)
      return { messages: listWithData<ClaimedMessage>(answer, 'messages'), nextDueMs }
    },
    ack: (items, options) => settle('ack', items, [], options),
    giveBack: (items, options) => settle('return', items, [], options),
    retry: (items, options) => settle('retry', items, ['delayMs', 'error'], options),
    fail: (items, options) => settle('fail', items, ['reason'], options),
    extend: (items, { leaseMs, signal } = {}) =>
      settle(leaseMs === undefined ? 'extend' : `extend?leaseMs=${leaseMs}`, items, [], { signal }),
    stats: async ({ signal } = {}) => jsonOf(await send({ path, signal })),
    async configure(settings, { signal } = {}) {
      await send({ method: 'PATCH', path, body: bodyOf(settings), signal })
    },
    async deadLetters({ limit, cursor, signal } = {}) {
      const answer = await send({ path: `${path}/dead`, query: { limit, cursor }, signal })
      return {
        dead: listWithData<DeadLetter>(answer, 'dead'),
        next: jsonOf<{ next: number | null }>(answer).next,
      }
    },
    async redrive({ signal, ...chosen } = {}) {
      return jsonOf<{ redriven: number[] }>(await post('redrive', bodyOf(chosen), { signal })).redriven
    },
    async purge({ ids, signal } = {}) {
      if (ids?.length === 0) return 0
      const answer = await send({
        method: 'DELETE',
        path: `${path}/dead`,
        query: { id: ids?.join(',') },
        signal,
      })
      return jsonOf<{ deleted: number }>(answer).deleted
    },
  }
}

/** A page of the queues of a server, by name. */
export async function listQueues(
  send: Send,
  { limit, cursor, signal }: PageOptions = {},
): Promise<{ queues: QueueStats[]; next: string | null }> {
  return jsonOf(await send({ path: '/v1/queues', query: { limit, cursor }, signal }))
}

function chosenOf(item: object, fields: readonly string[]): object {
  return Object.fromEntries(Object.entries(Object(item)).filter(([name]) => fields.includes(name)))
}
