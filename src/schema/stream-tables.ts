import { sql } from 'drizzle-orm'
import { bigint, boolean, check, index, integer, primaryKey, text } from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz, verbatimJson } from './column-types.ts'

/** Streams, their events, saved offsets and the memory of idempotent publishes. */
export function streamTables(schema: PgSchema) {
  /** One sequence numbers the events of all streams. CACHE 1: a cached block would be drawn before its lock. */
  const eventOffset = schema.sequence('event_offset', { startWith: 1, minValue: 1, cache: 1 })

  const streams = schema.table(
    'streams',
    {
      id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
      name: text('name').notNull().unique(),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      /** Retention: events older than this may go; null keeps them. */
      retainAgeMs: bigint('retain_age_ms', { mode: 'number' }),
      /** Retention: only this many newest events are kept; null keeps all. */
      retainCount: bigint('retain_count', { mode: 'number' }),
      /** Retention never removes what a consumer has not yet passed. */
      keepUnread: boolean('keep_unread').notNull().default(false),
    },
    (t) => [
      check('streams_retain_age', sql`${t.retainAgeMs} > 0`),
      check('streams_retain_count', sql`${t.retainCount} >= 0`),
    ],
  )

  /** `offset` has no default, so that no INSERT can go around `append`. */
  const events = schema.table(
    'events',
    {
      streamId: integer('stream_id').notNull(),
      offset: bigint('offset', { mode: 'number' }).notNull(),
      type: text('type').notNull(),
      key: text('key'),
      data: verbatimJson('data').notNull(),
      headers: verbatimJson('headers'),
      publishedAt: timestamptz('published_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.streamId, t.offset] })],
  )

  const offsets = schema.table(
    'offsets',
    {
      streamId: integer('stream_id')
        .notNull()
        .references(() => streams.id, { onDelete: 'cascade' }),
      consumer: text('consumer').notNull(),
      offset: bigint('offset', { mode: 'number' }).notNull(),
      updatedAt: timestamptz('updated_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [primaryKey({ columns: [t.streamId, t.consumer] })],
  )

  const publishKeys = schema.table(
    'publish_keys',
    {
      streamId: integer('stream_id').notNull(),
      key: text('key').notNull(),
      /** A hash of what was published under the key, to tell a retry from a mistake. */
      contentHash: text('content_hash').notNull(),
      offsets: bigint('offsets', { mode: 'number' }).array(),
      expiresAt: timestamptz('expires_at').notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.streamId, t.key] }),
      // a day's keys are many, the expired ones among them few
      index('publish_keys_expires').on(t.expiresAt),
    ],
  )

  /** What readers could see at a moment: retention by age works from these, never from an event's own time. */
  const horizonMarks = schema.table(
    'horizon_marks',
    {
      streamId: integer('stream_id').notNull(),
      at: timestamptz('at').notNull(),
      horizon: bigint('horizon', { mode: 'number' }).notNull(),
    },
    (t) => [primaryKey({ columns: [t.streamId, t.at] })],
  )

  return { eventOffset, streams, events, offsets, publishKeys, horizonMarks }
}
