import { customType } from 'drizzle-orm/pg-core'

/**
 * A `json` column (not `jsonb`) that is written as text: `json` keeps the text as it came, while
 * `jsonb` reorders keys, drops duplicates and refuses `\u0000`. It is read by casting to text.
 */
export const verbatimJson = customType<{ data: string; driverData: string }>({ dataType: () => 'json' })

/** A timestamp with time zone; every clock that decides something is the database's. */
export const timestamptz = customType<{ data: Date; driverData: string }>({
  dataType: () => 'timestamp with time zone',
  fromDriver: (value) => new Date(value),
  toDriver: (value) => value.toISOString(),
})
