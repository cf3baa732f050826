import type { Tables } from '../../schema/tables.ts'

/** What a role may do with the rows of a table. */
export type TablePrivilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE'

type SequenceKey = 'eventOffset' | 'lockFence'
type TableKey = Exclude<keyof Tables, 'schema' | SequenceKey>

const all: TablePrivilege[] = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']

/**
 * What Millrace does with each table while it runs, and nothing more. A table that is not named here does not
 * compile. Rows that are locked (`for update`) need UPDATE even where no value is ever changed.
 */
export const tablePrivileges: Record<TableKey, TablePrivilege[]> = {
  // the identity of the database and its versions are a matter of whoever migrates and adopts
  installation: ['SELECT'],
  migrations: ['SELECT'],
  apiKeys: ['SELECT', 'INSERT', 'DELETE'],
  streams: ['SELECT', 'INSERT', 'UPDATE'],
  // they come by the function append and go by trim_events, which run with their owner's rights
  events: ['SELECT'],
  offsets: ['SELECT', 'INSERT', 'UPDATE'],
  publishKeys: ['SELECT', 'UPDATE', 'DELETE'],
  horizonMarks: all,
  webhooks: all,
  webhookSecrets: all,
  deliveries: all,
  attempts: all,
  queues: ['SELECT', 'INSERT', 'UPDATE'],
  messages: all,
  deadLetters: all,
  dedupeKeys: all,
  topicBindings: ['SELECT', 'INSERT', 'DELETE'],
  locks: all,
  schedules: all,
}

/** Sequences by name. Those of identity columns need no grant. */
export const sequencePrivileges: Record<string, 'SELECT' | 'USAGE'> = {
  // readers look at it; only append draws from it
  event_offset: 'SELECT',
  // send_messages draws the numbers before it inserts
  messages_id_seq: 'USAGE',
  lock_fence: 'USAGE',
}
