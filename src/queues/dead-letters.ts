import { and, asc, eq, gt, inArray, sql } from 'drizzle-orm'
import { bigintArray } from '../db/array-literal.ts'
import { toNumber, toNumbers } from '../db/decode.ts'
import { executorFor, type Db, type TxOption } from '../db/port.ts'
import { qualified, runQuery, translated } from '../db/run.ts'
import { assertReadableName } from '../schema/names.ts'
import { wholeNumber } from './validate-message.ts'

/** A message that ran out of attempts or was given up. */
export interface DeadLetter {
  /** The number it had, and gets again when it is redriven. */
  id: number
  type: string | null
  key: string | null
  dataText: string
  headers: Record<string, string> | null
  priority: number
  /** How many attempts were made. */
  attempts: number
  maxAttempts: number
  sentAt: Date
  diedAt: Date
  reason: string
}

/** Which dead letters {@link listDeadLetters} returns. */
export interface DeadLetterPage extends TxOption {
  /** Only those with a greater number. Default 0. */
  after?: number
  /** At most so many: default 100, at most 1000. */
  limit?: number
}

/**
 * The dead letters of a queue, the oldest message first.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function listDeadLetters(
  db: Db,
  queue: string,
  options: DeadLetterPage = {},
): Promise<DeadLetter[]> {
  assertReadableName('queue', queue)
  const after = wholeNumber(options.after ?? 0, 'after', 0, Number.MAX_SAFE_INTEGER)
  const limit = Math.min(options.limit ?? 100, 1000)
  if (!(limit > 0)) return []
  const on = executorFor(db, options)
  const { queues, deadLetters } = on.tables
  const rows = await translated(
    on.drizzle
      .select({
        id: deadLetters.id,
        type: deadLetters.type,
        key: deadLetters.key,
        dataText: sql<string>`${deadLetters.data}::text`,
        headers: sql<string | null>`${deadLetters.headers}::text`,
        priority: deadLetters.priority,
        attempts: deadLetters.attempts,
        maxAttempts: deadLetters.maxAttempts,
        sentAt: deadLetters.sentAt,
        diedAt: deadLetters.diedAt,
        reason: deadLetters.reason,
      })
      .from(deadLetters)
      .innerJoin(queues, eq(queues.id, deadLetters.queueId))
      .where(and(eq(queues.name, queue), gt(deadLetters.id, after)))
      .orderBy(asc(deadLetters.id))
      .limit(Math.floor(limit)),
  )
  return rows.map((row) => Object.assign(row, { headers: parseHeaders(row.headers) }))
}

function parseHeaders(text: string | null): Record<string, string> | null {
  return text === null ? null : (JSON.parse(text) as Record<string, string>)
}

/** Which dead letters are meant. */
export interface DeadLetterChoice extends TxOption {
  /** Only these; absent: all. */
  ids?: readonly number[]
}

/** Options of {@link redriveDeadLetters}. */
export interface RedriveOptions extends DeadLetterChoice {
  /** At most so many in this call: default and at most 10000. */
  limit?: number
}

/**
 * Sends dead letters again, the oldest first, under the numbers they had and with all their attempts.
 * Returns the numbers of those sent. One statement.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function redriveDeadLetters(
  db: Db,
  queue: string,
  options: RedriveOptions = {},
): Promise<number[]> {
  assertReadableName('queue', queue)
  const on = executorFor(db, options)
  const ids = options.ids === undefined ? sql`null::bigint[]` : bigintArray(checkedIds(options.ids))
  const limit = wholeNumber(Math.min(options.limit ?? 10_000, 10_000), 'limit', 0, 10_000)
  const [row] = await runQuery<{ sent: unknown }>(
    on,
    sql`select ${qualified(on, 'redrive_dead_letters')}(${queue}::text, ${ids}, ${limit}::integer) as sent`,
  )
  return toNumbers(row?.sent)
}

/**
 * Deletes dead letters for good. Returns how many. One statement.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function purgeDeadLetters(
  db: Db,
  queue: string,
  options: DeadLetterChoice = {},
): Promise<number> {
  assertReadableName('queue', queue)
  const on = executorFor(db, options)
  const { queues, deadLetters } = on.tables
  const named = options.ids === undefined ? undefined : checkedIds(options.ids)
  if (named?.length === 0) return 0
  const ofQueue = on.drizzle.select({ id: queues.id }).from(queues).where(eq(queues.name, queue))
  const doomed = and(
    inArray(deadLetters.queueId, ofQueue),
    named === undefined ? undefined : sql`${deadLetters.id} = any(${bigintArray(named)})`,
  )
  const [row] = await runQuery<{ count: string }>(
    on,
    sql`with gone as (delete from ${deadLetters} where ${doomed} returning 1) select count(*)::text as count from gone`,
  )
  return toNumber(row?.count)
}

function checkedIds(ids: readonly number[]): number[] {
  return ids.map((id) => wholeNumber(id, 'ids', 0, Number.MAX_SAFE_INTEGER))
}
