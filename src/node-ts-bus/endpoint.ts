import { createWorkWakes } from '../attach-work.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { Ports } from '../ports.ts'
import type { ClaimedMessage, NewMessage } from '../queues/message.ts'
import { sendMessages } from '../queues/send-messages.ts'
import { publishToTopic } from '../queues/topics.ts'
import { createSettler } from '../queues/work/settler.ts'
import { createForwarder, type Forwarder } from '../wakes/forwarder.ts'
import { sql } from 'drizzle-orm'
import { findQueue, provision, verify } from './addresses.ts'
import { createInbox } from './inbox.ts'
import { createTransactionScopes, type TransactionScopes } from './node-transaction-scope.ts'
import { resolveSettings, type BusEndpointOptions } from './options.ts'
import { settledWithin } from './settled-within.ts'
import { createSettlements, type Settlements } from './settlements.ts'
import { topicOf } from './topic-name.ts'

/** A message on its way out: its body as JSON text. */
export type Outgoing = Omit<NewMessage, 'type' | 'maxAttempts' | 'leaseMs' | 'backoff'> & {
  /** The bus's `$name`. */
  name: string
}

/**
 * What a transport of the bus does, whatever the version of the bus: sending by `$name`, receiving with
 * leases, settling once, transactions. A transport translates between this and its version's interface.
 */
export interface BusEndpoint extends Settlements {
  readonly db: Db
  readonly queue: string
  readonly scopes: TransactionScopes
  /** @throws DATABASE_UNAVAILABLE, NOT_MIGRATED */
  connect(): Promise<void>
  /**
   * Provisions or verifies, as the options say, that the queue gets messages of these names and what
   * comes by these topics.
   *
   * @throws ENDPOINT_NOT_FOUND, INVALID_NAME
   */
  subscribe(to: { messageNames: readonly string[]; topics: readonly string[] }): Promise<void>
  start(): void
  /** Blocks until there is a message; undefined when stopped. */
  next(): Promise<ClaimedMessage | undefined>
  stop(): Promise<void>
  /** Sends to every queue that is bound to the name. Returns how many that are. */
  publish(message: Outgoing): Promise<number>
  /** @throws ENDPOINT_NOT_FOUND */
  sendTo(queue: string, message: Outgoing): Promise<void>
  /** Finishes what is being settled, and closes what is the endpoint's own. Every call returns the same promise. */
  close(): Promise<void>
}

/** Settles wait so long for others to join them. */
const settleBatchMs = 1
const settleBatchSize = 100
/** How long `close` goes on trying to settle. */
const closeMs = 5000

/**
 * Makes an endpoint; it does nothing before `connect` or `start`.
 *
 * @throws INVALID_NAME, INVALID_INPUT naming the option
 */
export function createBusEndpoint(options: BusEndpointOptions, ports: Ports): BusEndpoint {
  const settings = resolveSettings(options)
  const { queueName: queue, maxAttempts } = settings
  const { db, forwarder, owned } = openStore(options, ports)
  const scopes = createTransactionScopes()
  const settler = createSettler(db, queue, { ports, batchSize: settleBatchSize, batchMs: settleBatchMs })
  const wakes = createWorkWakes(() => forwarder, { ports, ...settings })
  const inbox = createInbox({ db, queue, ports, wakes, settler, ...settings })
  let queueId: number | undefined
  let closing: Promise<void> | undefined
  return {
    db,
    queue,
    scopes,
    ...createSettlements({ db, queue, maxAttempts, ports, scopes, inbox, settler }),
    ...createSending(db, scopes, maxAttempts),
    connect: () => probe(db),
    async subscribe({ messageNames, topics }) {
      const wanted = { queue, topics: [...new Set([...messageNames.map(topicOf), ...topics])] }
      queueId = await (settings.provision === 'create' ? provision : verify)(db, ports.log, wanted)
    },
    start() {
      if (queueId === undefined) throw new Error('the endpoint was not subscribed to anything')
      forwarder.start()
      inbox.start(queueId)
    },
    next: () => inbox.next(),
    stop: () => inbox.stop(),
    close: () => (closing ??= close()),
  }

  async function close(): Promise<void> {
    await settledWithin(ports.clock, inbox.stop().then(settler.flush), closeMs)
    settler.hurry()
    await inbox.close()
    if (owned) await Promise.all([forwarder.close(), db.close()])
  }
}

function openStore(
  options: BusEndpointOptions,
  ports: Ports,
): { db: Db; forwarder: Forwarder; owned: boolean } {
  if (options.db === undefined) return { ...pick(options.millrace), owned: false }
  const { db } = options
  const forwarder = createForwarder({
    connect: (signal) => db.connectDirect({ signal }),
    schema: db.schema,
    ports,
    listen: options.listen ?? db.capabilities.listen,
  })
  return { db, forwarder, owned: true }
}

function pick({ db, forwarder }: { db: Db; forwarder: Forwarder }): { db: Db; forwarder: Forwarder } {
  return { db, forwarder }
}

/** A wrong address and a missing table show at once, also to a bus that only sends. */
async function probe(db: Db): Promise<void> {
  await runQuery(db, sql`select from ${db.tables.queues} limit 1`)
}

function createSending(
  db: Db,
  scopes: TransactionScopes,
  maxAttempts: number,
): Pick<BusEndpoint, 'publish' | 'sendTo'> {
  const toNew = ({ name, ...rest }: Outgoing): NewMessage => ({ ...rest, type: name, maxAttempts })
  const inTurn = <T>(statement: (tx: { tx?: never }) => Promise<T>): Promise<T> => {
    const scope = scopes.current()
    if (scope === undefined) return statement({})
    return scope.inTurn(() => statement({ tx: scope.tx as never }))
  }
  return {
    publish: (message) =>
      inTurn(async (tx) => {
        const { queueIds } = await publishToTopic(db, topicOf(message.name), [toNew(message)], tx)
        return queueIds.length
      }),
    sendTo: (queue, message) =>
      inTurn(async (tx) => {
        await findQueue(db, queue, tx)
        await sendMessages(db, queue, [toNew(message)], tx)
      }),
  }
}
