import { arrayLiteral, numbersLiteral } from '../db/array-literal.ts'
import { toNumbers } from '../db/decode.ts'
import { fixedStatement, type FixedStatement, type Value } from '../db/fixed-statement.ts'
import { executorFor, type Db, type Executor, type TxOption } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { describeError } from '../errors/describe-error.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertSharedName } from '../schema/names.ts'
import type { Held } from './message.ts'
import { wholeNumber } from './validate-message.ts'

/** A batch beyond this belongs into several. */
export const maxItems = 10_000
/** A reason is for a person to read, not for a stack of a megabyte. */
const maxReasonLength = 2048

/** What stands with a dead letter that nobody gave a reason for. */
const noReason = 'given up without a reason'

/** A message to be tried again. */
export interface Retry extends Held {
  /** Not before so many milliseconds from now: 0 to 31622400000; default: the message's own backoff. */
  delayMs?: number
  /** What went wrong, kept with the message; the first 2048 characters. */
  error?: string
}

/** A message to be given up. */
export interface Failure extends Held {
  /** Kept with the dead letter; the first 2048 characters. Without one the letter says that there was none. */
  reason: string
}

/** What became of a retried message: it waits, it died of it (no attempts left), or the lease was lost. */
export type RetryOutcome = 'waiting' | 'dead' | 'lost'

/**
 * Finishes messages. Answers for each whether its lease still held; where it did not, nothing was
 * changed (Q1). One statement; with `{ tx }` it counts with the caller's commit (Q3).
 *
 * A lease holds until its time is over *and* somebody has claimed or swept the message since, so work
 * that ends a moment late still counts.
 *
 * @throws INVALID_NAME, INVALID_INPUT; ISOLATION_LEVEL when `{ tx }` is above READ COMMITTED and a
 *   message has a key (so do the others here, but for {@link extendMessages})
 */
export async function ackMessages(
  db: Db,
  queue: string,
  items: readonly Held[],
  options: TxOption = {},
): Promise<boolean[]> {
  return settle(executorFor(db, options), statements.ack, queue, items)
}

/**
 * Gives back messages that were claimed and not begun: ready at once, the attempt not counted.
 * Otherwise as {@link ackMessages}.
 *
 * @throws INVALID_NAME, INVALID_INPUT, ISOLATION_LEVEL
 */
export async function returnMessages(
  db: Db,
  queue: string,
  items: readonly Held[],
  options: TxOption = {},
): Promise<boolean[]> {
  return settle(executorFor(db, options), statements.giveBack, queue, items)
}

/** Options of {@link extendMessages}. */
export interface ExtendOptions extends TxOption {
  /** How long from now on: 1 to 86400000; default: what each message says. */
  leaseMs?: number
}

/**
 * Prolongs leases; never shortens one. A message that another transaction is settling at the moment is
 * answered as held, and not waited for. Otherwise as {@link ackMessages}.
 *
 * @throws INVALID_NAME, INVALID_INPUT
 */
export async function extendMessages(
  db: Db,
  queue: string,
  items: readonly Held[],
  options: ExtendOptions = {},
): Promise<boolean[]> {
  const { leaseMs } = options
  if (leaseMs !== undefined) wholeNumber(leaseMs, 'leaseMs', 1, 86_400_000)
  const on = executorFor(db, options)
  return settle(on, statements.extend, queue, items, [leaseMs ?? null])
}

/**
 * Moves messages into the dead letters at once, whatever attempts they had left. Otherwise as
 * {@link ackMessages}.
 *
 * @throws INVALID_NAME, INVALID_INPUT, ISOLATION_LEVEL
 */
export async function failMessages(
  db: Db,
  queue: string,
  items: readonly Failure[],
  options: TxOption = {},
): Promise<boolean[]> {
  assertHeld(items)
  const reasons = arrayLiteral(items.map((item) => cleanText(item.reason ?? noReason)))
  return settle(executorFor(db, options), statements.fail, queue, items, [reasons])
}

/**
 * Gives messages back to be tried again, after a delay or their own backoff; after their last attempt
 * they die instead. Otherwise as {@link ackMessages}.
 *
 * @throws INVALID_NAME, INVALID_INPUT, ISOLATION_LEVEL
 */
export async function retryMessages(
  db: Db,
  queue: string,
  items: readonly Retry[],
  options: TxOption = {},
): Promise<RetryOutcome[]> {
  const on = executorFor(db, options)
  const held = heldArguments(queue, items)
  for (const { delayMs } of items) if (delayMs !== undefined) assertDelay(delayMs)
  if (items.length === 0) return []
  const delays = numbersLiteral(items.map((item) => item.delayMs ?? null))
  const errors = arrayLiteral(items.map(({ error = null }) => (error === null ? null : cleanText(error))))
  const [row] = await runQuery<{ o_waiting: unknown; o_dead: unknown }>(
    on,
    retryStatement(on, [...held, delays, errors]),
  )
  const waiting = new Set(toNumbers(row?.o_waiting))
  const dead = new Set(toNumbers(row?.o_dead))
  return items.map((_, index) => (waiting.has(index + 1) ? 'waiting' : dead.has(index + 1) ? 'dead' : 'lost'))
}

/**
 * Checks the delay of a retry.
 *
 * @throws INVALID_INPUT
 */
export function assertDelay(delayMs: number): void {
  wholeNumber(delayMs, 'delayMs', 0, 366 * 86_400_000)
}

const heldParameters = '$1::text, $2::text::bigint[], $3::text::text[]::uuid[]'

const statementOf = (name: string, more = '') =>
  fixedStatement((named) => `select ${named(name)}(${heldParameters}${more}) as held`)

const statements = {
  ack: statementOf('ack_messages'),
  giveBack: statementOf('return_messages'),
  extend: statementOf('extend_messages', ', $4::integer'),
  fail: statementOf('fail_messages', ', $4::text::text[]'),
}

const retryStatement = fixedStatement(
  (named) => `select o_waiting, o_dead
    from ${named('retry_messages')}(${heldParameters}, $4::text::bigint[], $5::text::text[])`,
)

async function settle(
  on: Executor,
  statement: FixedStatement,
  queue: string,
  items: readonly Held[],
  more: Value[] = [],
): Promise<boolean[]> {
  const held = heldArguments(queue, items)
  if (items.length === 0) return []
  const [row] = await runQuery<{ held: unknown }>(on, statement(on, [...held, ...more]))
  const positions = toNumbers(row?.held)
  // the answer of an ack where all held
  if (positions[0] === 0) return items.map(() => true)
  const answers = items.map(() => false)
  for (const position of positions) answers[position - 1] = true
  return answers
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i

/**
 * Checks what is to be settled.
 *
 * @throws INVALID_INPUT
 */
export function assertHeld(items: readonly Held[]): void {
  if (!Array.isArray(items)) throw invalidInput('items', 'must be a list of claimed messages')
  if (items.length > maxItems) throw invalidInput('items', `are more than ${maxItems} in one call`)
  for (const item of items) wholeNumber((item as Held | null)?.id, 'id', 0, Number.MAX_SAFE_INTEGER)
}

/** Anything that cannot be a lease token is one that nobody holds. */
function heldArguments(queue: string, items: readonly Held[]): Value[] {
  assertSharedName('queue', queue)
  assertHeld(items)
  const leases = items.map(({ lease }) => (uuid.test(lease) ? lease : null))
  return [queue, numbersLiteral(items.map((item) => item.id)), arrayLiteral(leases)]
}

/** Error texts come from anywhere: what Postgres cannot store is replaced, not refused. */
function cleanText(text: unknown): string {
  return (typeof text === 'string' ? text : describeError(text))
    .slice(0, maxReasonLength)
    .toWellFormed()
    .replaceAll('\0', '\u{fffd}')
}
