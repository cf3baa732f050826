import { sql } from 'drizzle-orm'
import { bigint, index, text, uuid } from 'drizzle-orm/pg-core'
import type { PgSchema } from 'drizzle-orm/pg-core'
import { timestamptz } from './column-types.ts'

/** Locks with a time limit. */
export function lockTables(schema: PgSchema) {
  /**
   * One sequence for the fences of all locks: a row that nobody held for long can go, and whoever
   * makes it anew still gets a higher fence.
   */
  const lockFence = schema.sequence('lock_fence', { startWith: 1, minValue: 1, cache: 1 })

  const locks = schema.table(
    'locks',
    {
      name: text('name').primaryKey(),
      /** Proves who holds it; null: released. */
      token: uuid('token'),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      /** Held until then; in the past: free. */
      until: timestamptz('until').notNull(),
      acquiredAt: timestamptz('acquired_at')
        .notNull()
        .default(sql`clock_timestamp()`),
    },
    (t) => [index('locks_until').on(t.until)],
  )

  return { lockFence, locks }
}
