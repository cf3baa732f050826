import type { Db } from '../db/port.ts'
import { invalidInput } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import type { NewMessage } from '../queues/message.ts'
import { wholeNumber } from '../queues/validate-message.ts'
import { assertSharedName } from '../schema/names.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import { assertPolls } from '../wakes/poll-timer.ts'

/** A store that is there already: what `createMillrace` returns. */
export interface SharedStore {
  readonly db: Db
  readonly forwarder: Forwarder
}

/** How a bus endpoint reaches the database: with one of its own, or through a store that is shared. */
export type BusDatabase =
  | {
      /** From `millrace/node-postgres` or another driver. It is the transport's: it ends with the bus. */
      db: Db
      millrace?: undefined
    }
  | {
      /** Shares its pool and its LISTEN connection, and leaves both open. */
      millrace: SharedStore
      db?: undefined
    }

/** What a message may be sent with, besides its body and attributes. */
export type BusMessageOptions = Pick<
  NewMessage,
  'key' | 'priority' | 'delayMs' | 'at' | 'dedupeKey' | 'dedupeWindowMs'
>

/** What holds for every version of the bus. */
export interface BusEndpointSettings {
  /** The queue that this service receives on. */
  queueName: string
  /**
   * `create` makes the queue and its bindings when the bus is initialized, `verify` only looks whether
   * they are there. Default `create`.
   */
  provision?: 'create' | 'verify'
  /** How often a message is tried before it is dead: 1 to 1000, default 10. */
  maxAttempts?: number
  /** How long a message is leased; prolonged for as long as it is handled. 1 to 86400000, default 30000. */
  leaseMs?: number
  /**
   * How long it is prolonged at most: the bus forgets a message whose `afterReceive` or `onError`
   * listener throws, and another delivery has to come of it. 1 to 86400000, default 3600000 (an hour).
   */
  maxHandlingMs?: number
  /** False where LISTEN cannot reach, such as a transaction-mode pooler. Only with `db`. Default: as the driver can. */
  listen?: boolean
  /** Where no wakes come, idle polls come after this many milliseconds, doubling. Default 1000. */
  pollMinMs?: number
  /** How far the doubling goes. Default 60000. */
  pollMaxMs?: number
  /** Clock, random, log. Default: the system's, with the bus's logger. */
  ports?: Ports
}

/** All options of a bus endpoint. */
export type BusEndpointOptions = BusDatabase & BusEndpointSettings

/** Settings with their defaults filled in. */
export type ResolvedSettings = BusEndpointSettings &
  Required<Pick<BusEndpointSettings, 'provision' | 'maxAttempts' | 'leaseMs' | 'maxHandlingMs'>>

const day = 86_400_000

/**
 * Fills in defaults and checks.
 *
 * @throws INVALID_NAME, INVALID_INPUT naming the option
 */
export function resolveSettings(options: BusEndpointOptions): ResolvedSettings {
  assertSharedName('queue', options.queueName)
  const { provision = 'create', maxAttempts = 10, leaseMs = 30_000, maxHandlingMs = 3_600_000 } = options
  if ((options.db === undefined) === (options.millrace === undefined))
    throw invalidInput('db', 'or else millrace must be given')
  if (provision !== 'create' && provision !== 'verify')
    throw invalidInput('provision', 'must be create or verify')
  assertPolls(options)
  return {
    ...options,
    provision,
    maxAttempts: wholeNumber(maxAttempts, 'maxAttempts', 1, 1000),
    leaseMs: wholeNumber(leaseMs, 'leaseMs', 1, day),
    maxHandlingMs: wholeNumber(maxHandlingMs, 'maxHandlingMs', 1, day),
  }
}
