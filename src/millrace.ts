import type { Db, Executor, TxOption } from './db/port.ts'
import { MillraceError } from './errors/millrace-error.ts'
import type { Ports } from './ports.ts'
import type { Codec } from './streams/codec.ts'
import { createStreamHandle, type EventMap, type StreamHandle } from './streams/stream-handle.ts'
import { createSystemPorts } from './system-ports.ts'
import type { Listener, ListenOptions } from './wakes/fan-out.ts'
import { createForwarder, type Forwarder } from './wakes/forwarder.ts'
import { notify } from './wakes/notify.ts'
import { createAttach } from './attach-wake.ts'

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
  /** Notifies a channel; in a transaction, when it commits (N1). At most 7999 bytes. */
  notify(channel: string, payload: string, options?: TxOption): Promise<void>
  /** Listens to a channel, to which anybody may `pg_notify`. */
  listen(channel: string, options?: ListenOptions): Listener
  /** Runs `work` in a transaction; pass its `drizzle` as `{ tx }` to every write that belongs to it. */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>
  /** Ends subscriptions, listeners and the connection, and closes the database. Calls after it fail with STORE_CLOSED. */
  close(): Promise<void>
}

/**
 * Makes Millrace over a database. It connects when first used, and listens from the first subscription or
 * `listen` on.
 */
export function createMillrace(options: MillraceOptions): Millrace {
  const { db, ports = createSystemPorts(), pollMinMs, pollMaxMs } = options
  const forwarder = createForwarder({
    connect: (signal) => db.connectDirect({ signal }),
    schema: db.schema,
    ports,
    listen: options.listen ?? db.capabilities.listen,
  })
  let closing: Promise<void> | undefined
  const open = (): Forwarder => {
    if (closing !== undefined) throw new MillraceError('STORE_CLOSED', 'the store was closed')
    forwarder.start()
    return forwarder
  }
  const attach = createAttach(open, { ports, pollMinMs, pollMaxMs })
  return {
    db,
    forwarder,
    stream: (name, { codec } = {}) => createStreamHandle(name, { db, attach, clock: ports.clock, codec }),
    notify: (channel, payload, tx) => notify(db, channel, payload, tx),
    listen: (channel, listening) => open().listen(channel, listening),
    transaction: (work) => db.transaction(work),
    close: () => (closing ??= Promise.all([forwarder.close(), db.close()]).then(() => {})),
  }
}
