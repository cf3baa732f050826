import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  doublePrecision,
  index,
  integer,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz, verbatimJson } from './column-types.ts'

/** What a message carries through its life, and into its dead letter. */
function carried() {
  return {
    /** Smaller is claimed first. */
    priority: smallint('priority').notNull(),
    attempts: integer('attempts').notNull(),
    maxAttempts: integer('max_attempts').notNull(),
    leaseMs: integer('lease_ms').notNull(),
    backoffBaseMs: integer('backoff_base_ms').notNull(),
    backoffMaxMs: integer('backoff_max_ms').notNull(),
    backoffFactor: doublePrecision('backoff_factor').notNull(),
    sentAt: timestamptz('sent_at').notNull(),
    type: text('type'),
    key: text('key'),
    data: verbatimJson('data').notNull(),
    headers: verbatimJson('headers'),
  }
}

/** Queues, their messages, what died, what must not be sent twice, and which topics feed which queue. */
export function queueTables(schema: PgSchema) {
  const queues = schema.table(
    'queues',
    {
      id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
      name: text('name').notNull().unique(),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      /** How long finished messages are kept; null: they go at once. */
      retainFinishedMs: bigint('retain_finished_ms', { mode: 'number' }),
    },
    (t) => [check('queues_retain_finished', sql`${t.retainFinishedMs} > 0`)],
  )

  /**
   * No foreign key to queues: its row lock would be the one thing all senders share.
   *
   * `ready`: to be claimed; the only ones that a claim looks through. `delayed`: until `due_at`.
   * `leased`: until `due_at`. `blocked`: behind another message of its key. `done`: kept until `due_at`.
   */
  const messages = schema.table(
    'messages',
    {
      id: bigint('id', { mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
      dueAt: timestamptz('due_at'),
      leaseToken: uuid('lease_token'),
      queueId: integer('queue_id').notNull(),
      state: text('state', { enum: ['ready', 'delayed', 'leased', 'blocked', 'done'] }).notNull(),
      ...carried(),
      /** Why the last attempt failed, where its worker said so. */
      lastError: text('last_error'),
    },
    (t) => [
      // exactly the order of a claim: with any other it would sort all that waits
      index('messages_ready')
        .on(t.queueId, t.priority, t.id)
        .where(sql`${t.state} = 'ready'`),
      // what time alone will change, and when the next of it is
      index('messages_due')
        .on(t.queueId, t.dueAt)
        .where(sql`${t.state} in ('delayed', 'leased')`),
      index('messages_done')
        .on(t.queueId, t.dueAt)
        .where(sql`${t.state} = 'done'`),
      // finds the head of a key
      index('messages_key')
        .on(t.queueId, t.key, t.id)
        .where(sql`${t.key} is not null and ${t.state} <> 'done'`),
      // per-key order, once more and by the database itself: never two leased ones of a key
      uniqueIndex('messages_key_leased')
        .on(t.queueId, t.key)
        .where(sql`${t.key} is not null and ${t.state} = 'leased'`),
      check('messages_lease', sql`(${t.state} = 'leased') = (${t.leaseToken} is not null)`),
    ],
  )

  const deadLetters = schema.table(
    'dead_letters',
    {
      /** The number the message had, and gets again when it is redriven. */
      id: bigint('id', { mode: 'number' }).primaryKey(),
      queueId: integer('queue_id').notNull(),
      ...carried(),
      diedAt: timestamptz('died_at').notNull(),
      reason: text('reason').notNull(),
    },
    (t) => [index('dead_letters_queue').on(t.queueId, t.id)],
  )

  const dedupeKeys = schema.table(
    'dedupe_keys',
    {
      queueId: integer('queue_id').notNull(),
      key: text('key').notNull(),
      messageId: bigint('message_id', { mode: 'number' }).notNull(),
      expiresAt: timestamptz('expires_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.queueId, t.key] }), index('dedupe_keys_expiry').on(t.expiresAt)],
  )

  const topicBindings = schema.table(
    'topic_bindings',
    {
      topic: text('topic').notNull(),
      queueId: integer('queue_id')
        .notNull()
        .references(() => queues.id, { onDelete: 'cascade' }),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [primaryKey({ columns: [t.topic, t.queueId] }), index('topic_bindings_queue').on(t.queueId)],
  )

  return { queues, messages, deadLetters, dedupeKeys, topicBindings }
}
