import { assertPartOfBatch } from '../db/batch.ts'
import type { Db } from '../db/port.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import { assertSharedName } from '../schema/names.ts'
import { appendEvents, type Published, type PublishOptions } from './append-events.ts'
import type { NewEvent } from './event.ts'
import { appendShared, mayShare } from './share-publishes.ts'
import { validateEvent } from './validate-event.ts'

/** One statement and one lock serve a call; more than this belongs into several. */
export const maxEventsPerPublish = 10_000

/**
 * Publishes events to a stream, all or none, creating the stream with its first event. One round trip,
 * one statement. Outside a transaction it commits by itself and wakes listeners after the commit;
 * with `{ tx }` the events, and the wake, come with the caller's commit.
 *
 * Small calls without an idempotency key that are under way at once in a process share statements, so that many
 * publishers of a stream cost few commits; over HTTP drivers each call is a request of its own.
 *
 * @throws INVALID_NAME, INVALID_INPUT, INVALID_JSON, JSON_TOO_DEEP, IDEMPOTENCY_CONFLICT
 */
export async function publishEvents(
  db: Db,
  stream: string,
  events: readonly NewEvent[],
  options: PublishOptions = {},
): Promise<Published> {
  assertPartOfBatch(options)
  assertSharedName('stream', stream)
  assertEvents(events)
  if (events.length > maxEventsPerPublish) {
    throw invalidInput('events', `are more than ${maxEventsPerPublish} in one call`)
  }
  const valid = events.map((event, index) => validateEvent(event, events.length > 1 ? `[${index}].` : ''))
  const alone = options.tx !== undefined || options.idempotencyKey !== undefined
  return alone || !mayShare(db, valid)
    ? appendEvents(db, stream, valid, options)
    : appendShared(db, stream, valid)
}

/**
 * The rule for what is to be several events.
 *
 * @throws INVALID_INPUT
 */
export function assertEvents(events: unknown): void {
  if (!Array.isArray(events)) throw invalidInput('events', 'must be an array')
}
