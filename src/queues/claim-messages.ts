import { arrayLiteral } from '../db/array-literal.ts'
import { toDate, toNumber, toNumberOrNull } from '../db/decode.ts'
import { fixedStatement } from '../db/fixed-statement.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertLabel } from '../schema/labels.ts'
import { assertSharedName } from '../schema/names.ts'
import type { ClaimedMessage } from './message.ts'
import { wholeNumber } from './validate-message.ts'

/** One claim takes at most so many. */
export const maxMessagesPerClaim = 1000

/** Options of {@link claimMessages}. */
export interface ClaimOptions {
  /** At most so many messages: default 1, at most 1000; 0 and less claims nothing. */
  limit?: number
  /** Only messages of these types; absent or empty: all, also those without a type. */
  types?: readonly string[]
  /** How long the leases last: 1 to 86400000; default: what each message says. */
  leaseMs?: number
}

/** What {@link claimMessages} returns. */
export interface Claimed {
  /** In the order of priority, then of sending. */
  messages: ClaimedMessage[]
  /**
   * Where there were fewer than `limit`: in how many milliseconds something is due that the queue has
   * already (a delay, a retry, a lease that may run out); null: nothing. Otherwise 0.
   */
  nextDueMs: number | null
}

/**
 * Claims messages, each with a lease and one attempt counted. One statement, which also takes back
 * what was leased too long: such a message is claimed again, or dead if that was its last attempt (Q2).
 * Of a key it never hands out a message while another of it is leased, nor before an earlier one. A
 * queue that does not exist has nothing.
 *
 * It always runs in a transaction of its own.
 *
 * @throws INVALID_NAME, INVALID_INPUT; WRONG_ENVIRONMENT where the database belongs to another one (W7)
 */
export async function claimMessages(db: Db, queue: string, options: ClaimOptions = {}): Promise<Claimed> {
  assertClaim(queue, options)
  const limit = Math.min(Math.floor(options.limit ?? 1), maxMessagesPerClaim)
  const types = options.types?.length ? options.types : null
  if (!(limit > 0)) return { messages: [], nextDueMs: 0 }
  const values = [queue, limit, types && arrayLiteral(types), options.leaseMs ?? null, db.environment]
  const rows = await runQuery<ClaimRow>(db, claimStatement(db, values))
  const end = rows.at(-1)?.o_id === null ? rows.pop() : undefined
  const nextDueMs = rows.length < limit || end !== undefined ? toNumberOrNull(end?.o_next_ms) : 0
  const sentAt = createDateReader()
  const messages = rows.map((row) => toClaimed(row, sentAt))
  return { messages: messages.sort((a, b) => a.priority - b.priority || a.id - b.id), nextDueMs }
}

const claimStatement = fixedStatement(
  (named) => `select o_id, o_lease, o_attempt, o_max_attempts, o_lease_ms, o_priority, o_type, o_key,
      o_data, o_headers, o_sent_at, o_last_error, o_next_ms
    from ${named('claim_messages')}($1::text, $2::integer, $3::text::text[], $4::integer, $5::text)`,
)

/**
 * Checks what is to be claimed.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export function assertClaim(queue: string, { types, leaseMs }: ClaimOptions): void {
  assertSharedName('queue', queue)
  if (types !== undefined) assertTypes(types)
  if (leaseMs !== undefined) wholeNumber(leaseMs, 'leaseMs', 1, 86_400_000)
}

/**
 * The rule for the types that are asked for.
 *
 * @throws INVALID_INPUT
 */
export function assertTypes(types: unknown): void {
  if (!Array.isArray(types)) throw invalidInput('types', 'must be a list of strings')
  for (const type of types) assertLabel(type, 'types', 256)
}

/** Messages that were sent together have one time, and to read it is what takes longest about a row. */
function createDateReader(): (value: unknown) => Date {
  let last: unknown
  let time = 0
  return (value) => {
    if (value !== last) {
      last = value
      time = toDate(value).getTime()
    }
    return new Date(time)
  }
}

interface ClaimRow {
  /** Numbers of 64 bits are text on some drivers. */
  o_id: string | number | null
  o_lease: string
  o_attempt: number
  o_max_attempts: number
  o_lease_ms: number
  o_priority: number
  o_type: string | null
  o_key: string | null
  o_data: string
  o_headers: string | null
  o_sent_at: unknown
  o_last_error: string | null
  o_next_ms: string | number | null
}

function toClaimed(row: ClaimRow, sentAt: (value: unknown) => Date): ClaimedMessage {
  return {
    id: toNumber(row.o_id),
    lease: row.o_lease,
    attempt: row.o_attempt,
    maxAttempts: row.o_max_attempts,
    leaseMs: row.o_lease_ms,
    priority: row.o_priority,
    type: row.o_type,
    key: row.o_key,
    dataText: row.o_data,
    headers: row.o_headers === null ? null : (JSON.parse(row.o_headers) as Record<string, string>),
    sentAt: sentAt(row.o_sent_at),
    lastError: row.o_last_error,
  }
}
