import type {
  CoreDependencies,
  Middleware,
  Transport,
  TransportInitializationOptions,
  TransportMessage,
} from '@node-ts/bus-core'
import type { Command, Event, Message, MessageAttributes } from '@node-ts/bus-messages'
import type { DrizzlePg } from '../db/port.ts'
import { loggable } from '../errors/describe-error.ts'
import type { ClaimedMessage } from '../queues/message.ts'
import {
  purgeDeadLetters,
  redriveDeadLetters,
  type DeadLetterChoice,
  type DeadLetterPage,
  type RedriveOptions,
} from '../queues/dead-letters.ts'
import type { Log } from '../ports.ts'
import { createSystemPorts } from '../system-ports.ts'
import { decodeAttributes, encodeAttributes } from './attributes.ts'
import { listBusDeadLetters, type BusDeadLetter } from './bus-dead-letters.ts'
import { createBusLog, type BusLog } from './bus-log.ts'
import { createBusEndpoint, type BusEndpoint, type Outgoing } from './endpoint.ts'
import { describeFailure, serializable } from './failure.ts'
import type { TransactionClient } from './node-transaction-scope.ts'
import type { BusEndpointOptions, BusMessageOptions } from './options.ts'
import { retryDelayMs } from './retry-delay.ts'

export type { BusAttributes } from './attributes.ts'
export type { BusDeadLetter } from './bus-dead-letters.ts'
export type { BusFailure } from './failure.ts'
export type { QueryClient, TransactionClient } from './node-transaction-scope.ts'
export { topicOf } from './topic-name.ts'

/** What {@link MillraceTransport} takes. */
export type MillraceTransportOptions = BusEndpointOptions & {
  /** What a message is sent with, such as the key that orders it. Default: nothing. */
  messageOptions?: (message: Message) => BusMessageOptions
}

/** The raw message that travels through the bus: the claimed one, and how often it came before. */
export interface BusReceipt extends ClaimedMessage {
  /** Deliveries before this one. */
  failedAttempts: number
}

type Received = TransportMessage<unknown>

/** Begins a transaction, runs `work` with it, and commits when that resolves. */
export type Transactor = (work: (client: TransactionClient) => Promise<void>) => Promise<void>

/**
 * Transport of `@node-ts/bus-core` 1.3 over a Millrace queue. Each `$name` is a topic, each service a queue:
 * a command and an event alike go to every queue that is bound to the name. At least once; exactly once in
 * the database with {@link MillraceTransport.transactional}.
 */
export class MillraceTransport implements Transport<BusReceipt> {
  readonly #endpoint: BusEndpoint
  readonly #log: Log
  readonly #attachLog: BusLog['attach']
  readonly #messageOptions: (message: Message) => BusMessageOptions
  #core: CoreDependencies | undefined

  /** @throws INVALID_NAME, INVALID_INPUT naming the option */
  constructor(options: MillraceTransportOptions) {
    const busLog = createBusLog()
    const ports = options.ports ?? createSystemPorts(busLog)
    this.#log = ports.log
    this.#attachLog = busLog.attach
    this.#messageOptions = options.messageOptions ?? (() => ({}))
    this.#endpoint = createBusEndpoint(options, ports)
  }

  prepare(core: CoreDependencies): void {
    this.#core = core
    this.#attachLog(core.loggerFactory('millrace/node-ts-bus:transport'))
  }

  /** @throws DATABASE_UNAVAILABLE, NOT_MIGRATED */
  connect(): Promise<void> {
    return this.#endpoint.connect()
  }

  /** @throws ENDPOINT_NOT_FOUND where provisioning is `verify` and something is missing */
  async initialize({ handlerRegistry, sendOnly }: TransportInitializationOptions): Promise<void> {
    if (sendOnly) return
    await this.#endpoint.subscribe({
      messageNames: handlerRegistry.getMessageNames(),
      topics: handlerRegistry.getExternallyManagedTopicIdentifiers(),
    })
  }

  async start(): Promise<void> {
    this.#endpoint.start()
  }

  stop(): Promise<void> {
    return this.#endpoint.stop()
  }

  disconnect(): Promise<void> {
    return this.#endpoint.close()
  }

  dispose(): Promise<void> {
    return this.#endpoint.close()
  }

  async publish<TEvent extends Event>(event: TEvent, attributes?: MessageAttributes): Promise<void> {
    await this.#endpoint.publish(this.#outgoing(event, attributes))
  }

  async send<TCommand extends Command>(command: TCommand, attributes?: MessageAttributes): Promise<void> {
    const queues = await this.#endpoint.publish(this.#outgoing(command, attributes))
    if (queues === 0)
      this.#log.warn({ name: command.$name }, 'No queue is bound to a command: nobody gets it.')
  }

  /**
   * Sends to one queue, whatever it is bound to.
   *
   * @throws ENDPOINT_NOT_FOUND when there is no such queue
   */
  sendToAddress(queueName: string, message: Message, attributes?: MessageAttributes): Promise<void> {
    return this.#endpoint.sendTo(queueName, this.#outgoing(message, attributes))
  }

  /** Blocks until there is a message, or the transport is stopped. What cannot be parsed is dead-lettered. */
  async readNextMessage(): Promise<TransportMessage<BusReceipt> | undefined> {
    for (;;) {
      const claimed = await this.#endpoint.next()
      if (claimed === undefined) return undefined
      try {
        return this.#toTransportMessage(claimed)
      } catch (error) {
        await this.#buryUnreadable(claimed, error)
      }
    }
  }

  deleteMessage(message: Received): Promise<void> {
    return this.#endpoint.settle(receiptOf(message), { kind: 'ack' })
  }

  returnMessage(message: Received): Promise<void> {
    const receipt = receiptOf(message)
    const delayMs = retryDelayMs(this.#required().retryStrategy, receipt, this.#log)
    return this.#endpoint.settle(receipt, { kind: 'retry', delayMs })
  }

  fail(message: Received): Promise<void> {
    return this.#endpoint.settle(receiptOf(message), { kind: 'fail' })
  }

  /**
   * Runs `work` so that all this transport does in it, sending and settling, is part of a transaction of the
   * caller's: Drizzle's, or a client of `pg`, Neon or PGlite on which it was begun. The caller commits.
   */
  withTransaction<T>(client: TransactionClient, work: () => Promise<T>): Promise<T> {
    return this.#endpoint.scopes.within(client, work)
  }

  /**
   * The transaction of {@link withTransaction} or {@link transactional}, for a handler's own writes; undefined
   * outside. It is what was given there: name its type where that is not Drizzle's.
   */
  currentTransaction<Client extends TransactionClient = DrizzlePg>(): Client | undefined {
    return this.#endpoint.scopes.current()?.client as Client | undefined
  }

  /**
   * A middleware that handles each message in a transaction: the handlers' writes in
   * {@link currentTransaction}, what they send, and the end of the message commit together, or not at all.
   *
   * @param begin default: a Drizzle transaction on the transport's own database
   */
  transactional(begin: Transactor = this.#begin): Middleware<Received> {
    return async (message, next) => {
      try {
        await begin((client) => this.withTransaction(client, async () => next()))
      } catch (error) {
        this.#endpoint.note(receiptOf(message), error)
        throw serializable(error)
      }
    }
  }

  /** A middleware that keeps the error of a failed delivery: for its next one, and for its dead letter. */
  recordErrors(): Middleware<Received> {
    return async (message, next) => {
      try {
        await next()
      } catch (error) {
        this.#endpoint.note(receiptOf(message), error)
        throw serializable(error)
      }
    }
  }

  /** The dead letters of this service's queue, the oldest message first. */
  deadLetters(page?: DeadLetterPage): Promise<BusDeadLetter[]> {
    return listBusDeadLetters(this.#endpoint.db, this.#endpoint.queue, page)
  }

  /** Sends dead letters again, with all their attempts. Returns the numbers of those sent. */
  redriveDeadLetters(options?: RedriveOptions): Promise<number[]> {
    return redriveDeadLetters(this.#endpoint.db, this.#endpoint.queue, options)
  }

  /** Deletes dead letters for good. Returns how many. */
  purgeDeadLetters(options?: DeadLetterChoice): Promise<number> {
    return purgeDeadLetters(this.#endpoint.db, this.#endpoint.queue, options)
  }

  readonly #begin: Transactor = (work) => this.#endpoint.db.transaction((tx) => work(tx.drizzle))

  #required(): CoreDependencies {
    if (this.#core === undefined) throw new Error('the transport was not prepared by a bus')
    return this.#core
  }

  #outgoing(message: Message, attributes?: MessageAttributes): Outgoing {
    return {
      ...this.#messageOptions(message),
      name: message.$name,
      dataText: this.#required().messageSerializer.serialize(message),
      headers: encodeAttributes(attributes),
    }
  }

  #toTransportMessage(claimed: ClaimedMessage): TransportMessage<BusReceipt> {
    const domainMessage: unknown = this.#required().messageSerializer.deserialize(claimed.dataText)
    if (typeof domainMessage !== 'object' || domainMessage === null) throw new Error('it is not an object')
    return {
      id: String(claimed.id),
      domainMessage: domainMessage as Message,
      // the claimed message itself, for by it the endpoint knows what was settled
      raw: Object.assign(claimed, { failedAttempts: claimed.attempt - 1 }),
      attributes: decodeAttributes(claimed.headers),
    }
  }

  async #buryUnreadable(claimed: ClaimedMessage, error: unknown): Promise<void> {
    const reason = `the body cannot be parsed: ${describeFailure(error)}`
    try {
      await this.#endpoint.settle(claimed, { kind: 'fail', reason })
      this.#log.error(
        { message: claimed.id, err: loggable(error) },
        'A message cannot be parsed and is dead now.',
      )
    } catch (refused) {
      this.#log.error(
        { message: claimed.id, err: refused },
        'A message that cannot be parsed was left to its lease.',
      )
    }
  }
}

function receiptOf(message: Received): BusReceipt {
  return message.raw as BusReceipt
}
