import { pgSchema } from 'drizzle-orm/pg-core'
import { installationTables } from './installation-tables.ts'
import { lockTables } from './lock-tables.ts'
import { assertSchemaName } from './names.ts'
import { queueTables } from './queue-tables.ts'
import { scheduleTables } from './schedule-tables.ts'
import { streamTables } from './stream-tables.ts'
import { webhookTables } from './webhook-tables.ts'

/** The Postgres schema that holds Millrace unless MILLRACE_SCHEMA says otherwise; migrations are written for it. */
export const defaultSchema = 'millrace'

/**
 * All tables of Millrace in the Postgres schema of the given name.
 *
 * @throws INVALID_SETTING when the name is no plain lower-case identifier
 */
export function defineTables(schemaName: string = defaultSchema) {
  assertSchemaName(schemaName)
  const schema = pgSchema(schemaName)
  return {
    schema,
    ...installationTables(schema),
    ...streamTables(schema),
    ...webhookTables(schema),
    ...lockTables(schema),
    ...scheduleTables(schema),
    ...queueTables(schema),
  }
}

/** What {@link defineTables} returns. */
export type Tables = ReturnType<typeof defineTables>
