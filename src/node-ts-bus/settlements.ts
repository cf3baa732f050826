import type { Db } from '../db/port.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import type { ClaimedMessage } from '../queues/message.ts'
import { ackMessages, retryMessages } from '../queues/settle-messages.ts'
import type { Settler } from '../queues/work/settler.ts'
import { buryMessage, describeFailure } from './failure.ts'
import type { Inbox } from './inbox.ts'
import type { TransactionScope, TransactionScopes } from './node-transaction-scope.ts'

/** How the bus settles a message. */
export type BusSettlement =
  | { kind: 'ack' }
  | { kind: 'retry'; delayMs?: number }
  | { kind: 'fail'; reason?: string }

/** Settles what was handed out: in the transaction of the scope it is called in, else at once. */
export interface Settlements {
  /**
   * Settles a message by the lease it was read with. What this transport has settled already is left as it
   * is, in silence. Where the lease is lost nothing is settled (Q1): a warning, or in a transaction
   * an error, for what was done there must not count.
   *
   * @throws LEASE_LOST in a transaction
   */
  settle(message: ClaimedMessage, how: BusSettlement): Promise<void>
  /** Keeps what went wrong in handling a message, for its retry or its dead letter to tell. */
  note(message: ClaimedMessage, error: unknown): void
}

interface Parts {
  db: Db
  queue: string
  maxAttempts: number
  ports: Pick<Ports, 'clock' | 'log'>
  scopes: TransactionScopes
  inbox: Inbox
  settler: Settler
}

/** What is known of a message that was handed out. */
interface HandedOut {
  /** The transaction, whose outcome is not known here, or `direct`. */
  settledIn: TransactionScope | 'direct' | undefined
  /** It was failed, if only in a transaction that rolled back since. */
  failed: { reason?: string } | undefined
  error: unknown
}

export function createSettlements(parts: Parts): Settlements {
  const known = new WeakMap<ClaimedMessage, HandedOut>()
  const stateOf = (message: ClaimedMessage): HandedOut => {
    let state = known.get(message)
    if (state === undefined) known.set(message, (state = newState()))
    return state
  }
  return {
    settle: (message, how) => settleOnce(parts, message, stateOf(message), how),
    note(message, error) {
      stateOf(message).error = error
    },
  }
}

function newState(): HandedOut {
  return { settledIn: undefined, failed: undefined, error: undefined }
}

async function settleOnce(
  parts: Parts,
  message: ClaimedMessage,
  state: HandedOut,
  how: BusSettlement,
): Promise<void> {
  const scope = parts.scopes.current()
  const before = state.settledIn
  if (before === 'direct' || (before !== undefined && before === scope)) return
  // before the statement: two handlers may fail one message at the same time
  state.settledIn = scope ?? 'direct'
  parts.inbox.settling(message)
  try {
    const wanted = whatToDo(parts, message, state, how)
    const held = await run(parts, message, wanted, scope)
    if (!held) refuse(parts, message, scope, before)
    // its next due time, or the next message of its key, is news that no wake may bring
    else if (wanted.kind === 'retry' || message.key !== null)
      parts.inbox.kick(scope === undefined ? 'now' : 'later')
  } catch (error) {
    state.settledIn = before
    throw error
  } finally {
    parts.inbox.release(message)
  }
}

/** Nothing that the bus asks for brings a message back that was failed, or is out of attempts. */
function whatToDo(
  { maxAttempts }: Parts,
  message: ClaimedMessage,
  state: HandedOut,
  how: BusSettlement,
): BusSettlement & { reason?: string } {
  if (how.kind === 'ack') return how
  const cause = state.error === undefined ? undefined : describeFailure(state.error)
  if (how.kind === 'fail') state.failed = { reason: how.reason ?? cause ?? 'its handler gave it up' }
  if (state.failed !== undefined) return { kind: 'fail', reason: state.failed.reason }
  const limit = Math.min(maxAttempts, message.maxAttempts)
  if (message.attempt < limit) return { ...how, reason: cause }
  return { kind: 'fail', reason: cause ?? `attempt ${message.attempt} of ${limit} failed` }
}

/** Whether the lease still held. */
async function run(
  parts: Parts,
  message: ClaimedMessage,
  how: BusSettlement & { reason?: string },
  scope: TransactionScope | undefined,
): Promise<boolean> {
  const { db, queue, settler } = parts
  if (how.kind === 'fail') {
    const burial = { reason: how.reason ?? '', now: parts.ports.clock.now(), tx: scope?.tx }
    const bury = (): Promise<boolean> => buryMessage(db, queue, message, burial)
    return scope === undefined ? bury() : scope.inTurn(bury)
  }
  const retry = { id: message.id, lease: message.lease, ...delayAndError(how) }
  if (scope !== undefined) {
    return scope.inTurn(async () =>
      how.kind === 'ack'
        ? (await ackMessages(db, queue, [message], { tx: scope.tx }))[0] === true
        : (await retryMessages(db, queue, [retry], { tx: scope.tx }))[0] !== 'lost',
    )
  }
  const settlement = how.kind === 'ack' ? how : ({ kind: 'retry', ...delayAndError(how) } as const)
  // unknown: the settler has logged why, and the lease runs out
  return (await settler.settle(message, settlement)) !== false
}

function delayAndError(how: { delayMs?: number; reason?: string }): { delayMs?: number; error?: string } {
  return { delayMs: how.delayMs, error: how.reason }
}

/** @param before where it was settled before: that transaction may well have committed */
function refuse(
  { queue, ports }: Parts,
  message: ClaimedMessage,
  scope: TransactionScope | undefined,
  before: HandedOut['settledIn'],
): void {
  if (scope !== undefined) {
    throw new MillraceError('LEASE_LOST', `the lease of message ${message.id} is lost`, {
      details: { queue, message: message.id },
    })
  }
  if (before !== undefined) return
  ports.log.warn({ queue, message: message.id }, 'The lease of a message was lost: nothing was settled.')
}
