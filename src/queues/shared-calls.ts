import { assertPartOfBatch } from '../db/batch.ts'
import type { Db, TxOption } from '../db/port.ts'
import { canShare, shareStatement } from '../db/share-statement.ts'
import { claimMessages, maxMessagesPerClaim, type Claimed, type ClaimOptions } from './claim-messages.ts'
import type { ClaimedMessage, Held } from './message.ts'
import { ackMessages, assertHeld, maxItems } from './settle-messages.ts'

/** What a place in a shared claim gets: a message, or when to look again. */
type Place = { message: ClaimedMessage } | { nextDueMs: number | null }

/**
 * As claimMessages, for many callers in one process: calls that are under way at the same time and ask for the
 * same types and lease share a statement. Who came first is served first.
 */
export function createSharedClaim(db: Db, queue: string): (options?: ClaimOptions) => Promise<Claimed> {
  const groups = new Map<string, (places: readonly null[]) => Promise<Place[]>>()
  function groupOf({ types, leaseMs }: ClaimOptions): (places: readonly null[]) => Promise<Place[]> {
    const key = JSON.stringify([types ?? [], leaseMs ?? null])
    const found = groups.get(key)
    if (found !== undefined) return found
    // callers who make up types as they go share nothing, and must not be remembered for ever
    if (groups.size >= maxGroups) groups.clear()
    const group = shareStatement<null, Place>(
      (places) => claimPlaces(db, queue, { types, leaseMs, limit: places.length }),
      { maxItems: maxMessagesPerClaim },
    )
    groups.set(key, group)
    return group
  }
  return async (options = {}) => {
    // there is no claim that is part of anything
    assertPartOfBatch(undefined)
    const limit = Math.min(Math.floor(options.limit ?? 1), maxMessagesPerClaim)
    if (!(limit > 0) || !canShare(db)) return claimMessages(db, queue, options)
    const places = await groupOf(options)(Array.from({ length: limit }, () => null))
    const messages = places.flatMap((place) => ('message' in place ? [place.message] : []))
    const last = places.at(-1)!
    return { messages, nextDueMs: 'message' in last ? 0 : last.nextDueMs }
  }
}

/** As {@link createSharedClaim}, for whichever queues are asked for. */
export function createSharedClaims(db: Db): (queue: string, options?: ClaimOptions) => Promise<Claimed> {
  const queues = new Map<string, ReturnType<typeof createSharedClaim>>()
  return (queue, options) => {
    let claim = queues.get(queue)
    if (claim === undefined) {
      // what is under way goes on without the map
      if (queues.size >= maxQueues) queues.clear()
      claim = createSharedClaim(db, queue)
      queues.set(queue, claim)
    }
    return claim(options)
  }
}

/** Anybody may ask for any queue. */
const maxQueues = 1000
/** More sets of types and lease times than one queue's callers have. */
const maxGroups = 100

async function claimPlaces(
  db: Db,
  queue: string,
  options: ClaimOptions & { limit: number },
): Promise<Place[]> {
  const { messages, nextDueMs } = await claimMessages(db, queue, options)
  return Array.from({ length: options.limit }, (_, place) => {
    const message = messages[place]
    return message === undefined ? { nextDueMs } : { message }
  })
}

/** As ackMessages; what is not part of a caller's transaction shares statements as claims do. */
export function createSharedAck(
  db: Db,
  queue: string,
): (items: readonly Held[], options?: TxOption) => Promise<boolean[]> {
  const ack = shareStatement<Held, boolean>((items) => ackMessages(db, queue, items), { maxItems })
  return async (items, options) => {
    assertPartOfBatch(options)
    if (options?.tx !== undefined || items.length === 0 || !canShare(db))
      return ackMessages(db, queue, items, options)
    // what is wrong with one call must not fail another's
    assertHeld(items)
    return ack(items)
  }
}
