import { sql } from 'drizzle-orm'
import { bigint, boolean, check, index, integer, primaryKey, text, uuid } from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz, verbatimJson } from './column-types.ts'

/** Webhooks, their secrets, the deliveries in trouble and the log of attempts. */
export function webhookTables(schema: PgSchema) {
  const webhooks = schema.table(
    'webhooks',
    {
      id: text('id').primaryKey(),
      streamId: integer('stream_id').notNull(),
      url: text('url').notNull(),
      /** Event types to deliver, `*` allowed at the end; null delivers all. */
      types: text('types').array(),
      ordering: text('ordering', { enum: ['stream', 'key', 'none'] }).notNull(),
      format: text('format', { enum: ['standard', 'raw', 'cloudevents', 'cloudevents-binary'] }).notNull(),
      signature: text('signature', { enum: ['v1', 'v1a'] }).notNull(),
      state: text('state', { enum: ['active', 'paused', 'disabled'] }).notNull(),
      /** Why it is disabled, in words for a person. */
      stateReason: text('state_reason'),
      maxAttempts: integer('max_attempts').notNull(),
      /** Delays before each attempt, the first included; null takes the default schedule. */
      scheduleMs: bigint('schedule_ms', { mode: 'number' }).array(),
      /** Up to this percentage is added to each delay at random. */
      jitterPercent: integer('jitter_percent').notNull().default(20),
      timeoutMs: integer('timeout_ms').notNull(),
      /** Requests per second; null is unlimited. */
      rateLimit: integer('rate_limit'),
      headers: verbatimJson('headers'),
      /** Low-water mark: every matching event up to here is delivered, or has a row in `deliveries`. */
      offset: bigint('offset', { mode: 'number' }).notNull(),
      /** The earliest due time of its retries, kept by whoever flushes; null: none. */
      dueAt: timestamptz('due_at'),
      /** So much is in trouble that new events wait in the stream until a retry frees room. */
      saturated: boolean('saturated').notNull().default(false),
      /** Since when every attempt has failed; null after a success. */
      failingSince: timestamptz('failing_since'),
      /** A failure after this time disables it; null: the next failure sets it anew. */
      disableAfter: timestamptz('disable_after'),
      leaseToken: uuid('lease_token'),
      leaseUntil: timestamptz('lease_until'),
      /** Counts the holders of the lease, and the changes that end what a claim brought. */
      leaseFence: bigint('lease_fence', { mode: 'number' }).notNull().default(0),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      updatedAt: timestamptz('updated_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [
      // claims look for the webhooks of a stream, and for those with a due retry
      index('webhooks_stream').on(t.streamId, t.id),
      index('webhooks_due')
        .on(t.dueAt)
        .where(sql`${t.state} = 'active'`),
      // when the lease of a worker that died runs out
      index('webhooks_leased')
        .on(t.leaseUntil)
        .where(sql`${t.leaseToken} is not null`),
      check('webhooks_offset', sql`${t.offset} >= 0`),
    ],
  )

  const webhookSecrets = schema.table(
    'webhook_secrets',
    {
      id: text('id').primaryKey(),
      webhookId: text('webhook_id')
        .notNull()
        .references(() => webhooks.id, { onDelete: 'cascade' }),
      /** The secret, sealed under the master key (or in the clear where none is set: the prefix tells). */
      sealed: text('sealed').notNull(),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      /** After a rotation: until when the old secret still signs; null: current. */
      expiresAt: timestamptz('expires_at'),
    },
    (t) => [index('webhook_secrets_webhook').on(t.webhookId)],
  )

  /** Only trouble: an event that succeeds at once never has a row here. */
  const deliveries = schema.table(
    'deliveries',
    {
      webhookId: text('webhook_id')
        .notNull()
        .references(() => webhooks.id, { onDelete: 'cascade' }),
      offset: bigint('offset', { mode: 'number' }).notNull(),
      /** The ordering unit: the event's key, '' for the whole stream, null where nothing is ordered. */
      unit: text('unit'),
      state: text('state', { enum: ['retrying', 'blocked', 'dead'] }).notNull(),
      attempts: integer('attempts').notNull().default(0),
      /** When a retrying delivery is to be tried again. */
      dueAt: timestamptz('due_at'),
      lastStatus: integer('last_status'),
      lastError: text('last_error'),
      /** The last answer's body, at most 16 KiB of clean text. */
      lastAnswer: text('last_answer'),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      updatedAt: timestamptz('updated_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [
      primaryKey({ columns: [t.webhookId, t.offset] }),
      index('deliveries_due')
        .on(t.webhookId, t.dueAt)
        .where(sql`${t.state} = 'retrying'`),
      index('deliveries_unit')
        .on(t.webhookId, t.unit, t.offset)
        .where(sql`${t.state} <> 'dead'`),
    ],
  )

  /** The log of attempts that an operator reads; capped per webhook and aged out. */
  const attempts = schema.table(
    'attempts',
    {
      id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
      webhookId: text('webhook_id')
        .notNull()
        .references(() => webhooks.id, { onDelete: 'cascade' }),
      offset: bigint('offset', { mode: 'number' }).notNull(),
      attempt: integer('attempt').notNull(),
      at: timestamptz('at').notNull(),
      durationMs: integer('duration_ms').notNull(),
      outcome: text('outcome', { enum: ['delivered', 'retry', 'dead', 'disabled'] }).notNull(),
      status: integer('status'),
      error: text('error'),
      answer: text('answer'),
    },
    (t) => [index('attempts_webhook').on(t.webhookId, t.id), index('attempts_at').on(t.at)],
  )

  return { webhooks, webhookSecrets, deliveries, attempts }
}
