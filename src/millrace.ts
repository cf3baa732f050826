import type { Db, Executor, TxOption } from './db/port.ts'
import { MillraceError } from './errors/millrace-error.ts'
import { createLockHandle, type LockHandle } from './locks/lock-handle.ts'
import type { Ports } from './ports.ts'
import type { ClaimWait } from './queues/claim-or-wait.ts'
import { createQueueHandle, type QueueHandle, type QueueParts } from './queues/queue-handle.ts'
import { createTopicHandle, type TopicHandle } from './queues/topic-handle.ts'
import { workQueue, type Worker } from './queues/work/work-queue.ts'
import { createSchedules, type Schedules } from './schedules/schedules-handle.ts'
import type { Codec } from './streams/codec.ts'
import { createStreamHandle, type EventMap, type StreamHandle } from './streams/stream-handle.ts'
import { createSystemPorts } from './system-ports.ts'
import type { Listener, ListenOptions } from './wakes/fan-out.ts'
import { createForwarder, type Forwarder } from './wakes/forwarder.ts'
import { notify } from './wakes/notify.ts'
import { assertPolls } from './wakes/poll-timer.ts'
import { createAttach } from './attach-wake.ts'
import { createClaimWait, createWorkWakes } from './attach-work.ts'

/** What {@link createMillrace} takes. */
export interface MillraceOptions {
  /** From `millrace/node-postgres`, `millrace/neon-ws`, `millrace/neon-http` or `millrace/pglite`. */
  db: Db
  /** False where LISTEN cannot reach, such as a transaction-mode pooler: everything polls. Default: as the driver can. */
  listen?: boolean
  /** Idle polls come after this many milliseconds, doubling. Default 1000. */
  pollMinMs?: number
  /** How far the doubling goes. Default 60000. */
  pollMaxMs?: number
  /** Clock, random, log. Default: the system's, with no log. */
  ports?: Ports
}

/** Millrace as a library, over one database. */
export interface Millrace {
  readonly db: Db
  /** The LISTEN connection: its mode, and whether it arrived. */
  readonly forwarder: Forwarder
  /** A handle on a stream, typed by its events. Makes no statement. */
  stream<Events extends EventMap = Record<string, unknown>>(
    name: string,
    options?: { codec?: Codec },
  ): StreamHandle<Events>
  /** A handle on a queue, typed by its messages' data. Makes no statement. */
  queue<Data = unknown>(name: string): QueueHandle<Data>
  /** A handle on a topic, whose messages go to every queue bound to it. Makes no statement. */
  topic<Data = unknown>(name: string): TopicHandle<Data>
  /** A handle on a lock. Makes no statement. */
  lock(name: string): LockHandle
  readonly schedules: Schedules
  /** Notifies a channel; in a transaction, when it commits (N1). At most 7999 bytes. */
  notify(channel: string, payload: string, options?: TxOption): Promise<void>
  /** Listens to a channel, to which anybody may `pg_notify`. */
  listen(channel: string, options?: ListenOptions): Listener
  /** Runs `work` in a transaction; pass its `drizzle` as `{ tx }` to every write that belongs to it. */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>
  /**
   * Commits writes together, all or none, on every driver: over neon-http in one request. `work` makes them with
   * `{ tx }`, its own among them by `tx`, and returns them without awaiting any.
   *
   * @example
   * const [, offset] = await store.batch((tx) => [
   *   tx.insert(orders).values(order),
   *   store.stream('orders').publish({ type: 'order.created', data: order }, { tx }),
   * ])
   * @throws TRANSACTION_UNSUPPORTED for trim, and for put, resume and runNow of schedules: they take several
   *   statements; INVALID_INPUT for a call of ours without `{ tx }`, which would commit on its own
   */
  batch: Db['batch']
  /** Stops workers, ends subscriptions, listeners and the connection, and closes the database. Calls after it fail with STORE_CLOSED. */
  close(): Promise<void>
}

/**
 * Makes Millrace over a database. It connects when first used, and listens from the first subscription or
 * `listen` on.
 *
 * @throws INVALID_INPUT for a pace of polls that is none
 */
export function createMillrace(options: MillraceOptions): Millrace {
  const { db, ports = createSystemPorts(), pollMinMs, pollMaxMs } = options
  assertPolls(options)
  const forwarder = createForwarder({
    connect: (signal) => db.connectDirect({ signal }),
    schema: db.schema,
    ports,
    listen: options.listen ?? db.capabilities.listen,
  })
  let closing: Promise<void> | undefined
  const assertOpen = (): void => {
    if (closing !== undefined) throw new MillraceError('STORE_CLOSED', 'the store was closed')
  }
  const open = (): Forwarder => {
    assertOpen()
    forwarder.start()
    return forwarder
  }
  const pace = { ports, pollMinMs, pollMaxMs }
  const attach = createAttach(open, pace)
  const { startWorker, stopWorkers } = createWorkers(db, open, pace)
  const ending = new AbortController()
  const claimWait = endedBy(ending.signal, createClaimWait(db, open, pace), assertOpen)
  return {
    db,
    forwarder,
    stream: (name, { codec } = {}) =>
      createStreamHandle(name, { db, attach, clock: ports.clock, codec, assertOpen }),
    queue: (name) => createQueueHandle(name, { db, startWorker, claimWait }),
    topic: (name) => createTopicHandle(name, db),
    lock: (name) => createLockHandle(name, db, ports),
    schedules: createSchedules(db),
    notify: (channel, payload, tx) => notify(db, channel, payload, tx),
    listen: (channel, listening) => open().listen(channel, listening),
    transaction: (work) => db.transaction(work),
    batch: (work) => db.batch(work),
    close() {
      closing ??= stopWorkers()
        .then(() => Promise.all([forwarder.close(), db.close()]))
        .then(() => {})
      // workers may take their time; a claim that only waits has none to take
      ending.abort()
      return closing
    },
  }
}

/** Claims that wait end with the store, by its error. */
function endedBy(ending: AbortSignal, claimWait: ClaimWait, assertOpen: () => void): ClaimWait {
  return {
    ...claimWait,
    async attach(queue) {
      const wakes = await claimWait.attach(queue)
      return {
        ...wakes,
        async wait({ signal, ...options }) {
          const either = signal === undefined ? ending : AbortSignal.any([signal, ending])
          const outcome = await wakes.wait({ ...options, signal: either })
          if (outcome === 'aborted') assertOpen()
          return outcome
        },
      }
    },
  }
}

/** The workers of a store, which end before the database is closed under them. */
function createWorkers(
  db: Db,
  open: () => Forwarder,
  pace: { ports: Ports; pollMinMs?: number; pollMaxMs?: number },
): Pick<QueueParts, 'startWorker'> & { stopWorkers(): Promise<void> } {
  const workers = new Set<Worker>()
  const wakes = createWorkWakes(open, pace)
  return {
    startWorker(queue, handler, options) {
      open()
      const worker = workQueue(db, queue, handler, { pollMs: null, ...options, ports: pace.ports, wakes })
      workers.add(worker)
      void worker.stopped.then(() => workers.delete(worker))
      return worker
    },
    async stopWorkers() {
      await Promise.all(Array.from(workers, (worker) => worker.stop()))
    },
  }
}
