import { defineTables } from './tables.ts'

/** The tables in the default schema, one export each: what drizzle-kit reads to make migrations. */
export const {
  schema,
  installation,
  migrations,
  apiKeys,
  eventOffset,
  streams,
  events,
  offsets,
  publishKeys,
  horizonMarks,
  webhooks,
  webhookSecrets,
  deliveries,
  attempts,
  lockFence,
  locks,
  schedules,
  queues,
  messages,
  deadLetters,
  dedupeKeys,
  topicBindings,
} = defineTables()
