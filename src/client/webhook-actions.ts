import { bodyOf } from './data.ts'
import { jsonOf, segment, type Send } from './request.ts'
import type { CallOptions, Webhook } from './types.ts'

/** How a test event went. */
export interface TestOutcome {
  /** A 2xx came. */
  delivered: boolean
  durationMs: number
  /** Absent when no answer came. */
  status?: number
  answer?: string
  /** Why no answer came. */
  error?: string
}

/** What a rotation returns: the only time that the secret is shown. */
export interface RotatedSecret {
  secret: string
  /** For v1a: what receivers verify with. */
  publicKey?: string
  /** Until when the old secret signs too; ISO 8601. */
  overlapUntil: string
}

/** A delivery in trouble, or given up. */
export interface WebhookDelivery {
  offset: number
  state: 'retrying' | 'blocked' | 'dead'
  /** Its key; `''` under stream order; null where it stands outside the order. */
  unit: string | null
  /** Null when the event was trimmed. */
  type: string | null
  attempts: number
  /** ISO 8601; null unless retrying. */
  dueAt: string | null
  lastStatus: number | null
  lastError: string | null
  lastAnswer: string | null
  updatedAt: string
}

/** A line of the attempt log. Events that succeed at once leave none. */
export interface WebhookAttempt {
  id: number
  offset: number
  attempt: number
  at: string
  durationMs: number
  outcome: 'delivered' | 'retry' | 'dead' | 'disabled'
  status: number | null
  error: string | null
  answer: string | null
}

/** Options of the two lists. */
interface RangeOptions extends CallOptions {
  /** 1 to 100, default 20. */
  limit?: number | undefined
  /** The `next` of the page before. */
  cursor?: number | undefined
}

/** Which deliveries to list. */
export interface DeliveryListOptions extends RangeOptions {
  state?: WebhookDelivery['state'] | undefined
}

/** Which attempts to list. */
export interface AttemptListOptions extends RangeOptions {
  outcome?: WebhookAttempt['outcome'] | undefined
  /** Only those of this event. */
  offset?: number | undefined
}

/** What can be done with a webhook. Each throws NOT_FOUND when there is none of the id. */
export interface WebhookActions {
  /** Nothing more is sent and nothing is lost; resolves once the worker that was delivering knows. */
  pause(id: string, options?: CallOptions): Promise<Webhook>
  /** Resumes a paused or disabled one where it stopped. */
  resume(id: string, options?: CallOptions): Promise<Webhook>
  /**
   * Sends a signed test event (`millrace.test`) now.
   *
   * @throws CONFLICT where the server does not deliver
   */
  test(id: string, options?: CallOptions): Promise<TestOutcome>
  /**
   * A new secret; the old one signs too for `overlapMs`: 0 to 7 days, default 24 hours.
   *
   * @throws INVALID_INPUT
   */
  rotateSecret(
    id: string,
    options?: CallOptions & { secret?: string | undefined; overlapMs?: number | undefined },
  ): Promise<RotatedSecret>
  /**
   * Moves it after an offset, or to the first event published at or after a time. Returns the offset.
   *
   * @throws INVALID_INPUT, OFFSET_AHEAD
   */
  seek(id: string, place: { offset: number } | { time: Date }, options?: CallOptions): Promise<number>
  /** Gives dead letters, all or those that died since, their attempts anew. Returns how many. */
  redrive(id: string, options?: CallOptions & { since?: Date | undefined }): Promise<number>
  /**
   * Retries one delivery now.
   *
   * @throws NOT_FOUND when it is in no trouble; CONFLICT when it waits behind another of its key
   */
  retry(id: string, offset: number, options?: CallOptions): Promise<void>
  /** The deliveries in trouble, by offset. */
  deliveries(
    id: string,
    options?: DeliveryListOptions,
  ): Promise<{ deliveries: WebhookDelivery[]; next: number | null }>
  /** The attempt log, newest first. */
  attempts(
    id: string,
    options?: AttemptListOptions,
  ): Promise<{ attempts: WebhookAttempt[]; next: number | null }>
}

/** A test event takes as long as a webhook's time-out, which the server waits for. */
const longestAttemptMs = 30_000

export function createWebhookActions(send: Send, item: (id: string) => string): WebhookActions {
  const post = async (id: string, action: string, options: CallOptions = {}, body: object = {}) =>
    send({
      method: 'POST',
      path: `${item(id)}/${action}`,
      body: bodyOf(body),
      signal: options.signal,
      ...(action === 'test' ? { waitMs: longestAttemptMs } : {}),
    })
  return {
    pause: async (id, options) => jsonOf(await post(id, 'pause', options)),
    resume: async (id, options) => jsonOf(await post(id, 'resume', options)),
    test: async (id, options) => jsonOf(await post(id, 'test', options)),
    async rotateSecret(id, { signal, ...rotation } = {}) {
      return jsonOf(await post(id, 'rotate-secret', { signal }, rotation))
    },
    async seek(id, place, options) {
      const body = 'time' in place ? { time: place.time.toISOString() } : place
      return jsonOf<{ offset: number }>(await post(id, 'seek', options, body)).offset
    },
    async redrive(id, { signal, since } = {}) {
      const body = since === undefined ? {} : { since: since.toISOString() }
      return jsonOf<{ redriven: number }>(await post(id, 'redrive', { signal }, body)).redriven
    },
    async retry(id, offset, { signal } = {}) {
      const path = `${item(id)}/deliveries/${segment('offset', String(offset))}/retry`
      await send({ method: 'POST', path, signal })
    },
    async deliveries(id, { signal, ...query } = {}) {
      return jsonOf(await send({ path: `${item(id)}/deliveries`, query: { ...query }, signal }))
    },
    async attempts(id, { signal, ...query } = {}) {
      return jsonOf(await send({ path: `${item(id)}/attempts`, query: { ...query }, signal }))
    },
  }
}
