import { sql } from 'drizzle-orm'
import { bigint, boolean, check, index, integer, text, uuid } from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz, verbatimJson } from './column-types.ts'

/** What is to be published or sent at times to come. */
export function scheduleTables(schema: PgSchema) {
  const schedules = schema.table(
    'schedules',
    {
      name: text('name').primaryKey(),
      targetKind: text('target_kind', { enum: ['stream', 'queue'] }).notNull(),
      /** The name of the stream or queue. */
      target: text('target').notNull(),
      /** 5 or 6 fields, read in `time_zone`; null: every `every_ms`. */
      cron: text('cron'),
      timeZone: text('time_zone'),
      everyMs: bigint('every_ms', { mode: 'number' }),
      catchUp: text('catch_up', { enum: ['all', 'last', 'none'] }).notNull(),
      /** A message of a queue may have none. */
      type: text('type'),
      key: text('key'),
      data: verbatimJson('data').notNull(),
      paused: boolean('paused').notNull().default(false),
      /** The first boundary that has not fired; null: no more come. Written in whole milliseconds. */
      nextAt: timestamptz('next_at'),
      /** The last boundary that fired. */
      lastAt: timestamptz('last_at'),
      /** New with every change of the row: what a firing compares, so that it happens once (Q5). */
      revision: uuid('revision')
        .notNull()
        .default(sql`gen_random_uuid()`),
      /** Firings in a row that failed. */
      failures: integer('failures').notNull().default(0),
      lastError: text('last_error'),
      /** After a failure: not before then. */
      retryAt: timestamptz('retry_at'),
      createdAt: timestamptz('created_at')
        .notNull()
        .default(sql`clock_timestamp()`),
      updatedAt: timestamptz('updated_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [
      // what is due, and when the next one is
      index('schedules_due')
        .on(sql`greatest(${t.nextAt}, ${t.retryAt})`)
        .where(sql`not ${t.paused} and ${t.nextAt} is not null`),
      check('schedules_timing', sql`(${t.cron} is null) <> (${t.everyMs} is null)`),
      check('schedules_type', sql`${t.type} is not null or ${t.targetKind} = 'queue'`),
      check('schedules_time_zone', sql`(${t.cron} is null) = (${t.timeZone} is null)`),
    ],
  )

  return { schedules }
}
