import {
  Bus,
  type BusConfiguration,
  type BusInstance,
  type Logger,
  type TransportMessage,
} from '@node-ts/bus-core'
import { Command, Event } from '@node-ts/bus-messages'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import { migrate } from '../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../src/db/migrate/node-files.ts'
import type { Db } from '../../src/db/port.ts'
import {
  MillraceTransport,
  type BusReceipt,
  type MillraceTransportOptions,
} from '../../src/node-ts-bus/transport.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { emptyPglite } from '../support/pglite.ts'

// every bus listens for the signals that end the process, and a file of tests makes many
process.setMaxListeners(200)

/** A migrated database. */
export interface OpenedDb {
  db: Db
  /** For when `db` is closed, as a transport does that owns it. */
  close(): Promise<void>
}

interface OpenDriver {
  name: string
  sessions: boolean
  open(): Promise<OpenedDb>
}

const all: OpenDriver[] = [
  {
    name: 'node-postgres',
    sessions: true,
    async open() {
      const { url, drop } = await createMigratedDatabase()
      return { db: createNodePostgresDb({ url }), close: drop }
    },
  },
  {
    name: 'neon-ws',
    sessions: true,
    async open() {
      const { url, drop } = await createMigratedDatabase()
      const gateway = await startGateway(url)
      const close = async (): Promise<void> => {
        await gateway.close()
        await drop()
      }
      return { db: createNodeNeonWsDb({ url, gateway }), close }
    },
  },
  {
    name: 'pglite',
    sessions: false,
    async open() {
      const db = createPgliteDb({ pglite: await emptyPglite() })
      await migrate(db, { files: await readMigrationFiles() })
      return { db, close: async () => {} }
    },
  },
]

const long = process.env.MILLRACE_LONG_TESTS === '1'
if (!long) process.stderr.write('not run: the bus over neon-ws, which takes MILLRACE_LONG_TESTS=1\n')

/** The drivers that a bus can listen on. */
export const openDrivers = all.filter(({ name }) => long || name !== 'neon-ws')

/** A server's database, with a pool for what no function of Millrace does. */
export interface OpenedServer extends OpenedDb {
  url: string
  pool: pg.Pool
}

export async function openServer(): Promise<OpenedServer> {
  const { url, drop } = await createMigratedDatabase()
  const db = createNodePostgresDb({ url })
  const pool = new pg.Pool({ connectionString: url })
  return {
    url,
    db,
    pool,
    async close() {
      await Promise.all([db.close(), pool.end()])
      await drop()
    },
  }
}

export class Numbered extends Command {
  static readonly NAME = '@test/numbered'
  $name = Numbered.NAME
  $version = 1
  readonly number: number

  constructor(number: number) {
    super()
    this.number = number
  }
}

export class Happened extends Event {
  static readonly NAME = '@test/happened'
  $name = Happened.NAME
  $version = 1
  readonly number: number

  constructor(number: number) {
    super()
    this.number = number
  }
}

/** A logger that keeps the texts of what is a warning or worse. */
export interface KeptLog {
  warnings: string[]
  logger: Logger
}

export function keepLog(): KeptLog {
  const warnings: string[] = []
  const keep = (message: string): void => void warnings.push(message)
  const drop = (): void => {}
  return {
    warnings,
    logger: { debug: drop, trace: drop, info: drop, warn: keep, error: keep, fatal: keep },
  }
}

/** What {@link openBus} takes. */
export interface BusSetup {
  transport: MillraceTransport
  /** Handlers, middlewares, what else. */
  configure(bus: BusConfiguration): BusConfiguration
  /** Whether the bus reads by itself, which it else does not: default true. */
  start?: boolean
  log?: KeptLog
}

/** A bus that is initialized, and disposed when the test is over. */
export async function openBus({ transport, configure, start = true, log }: BusSetup): Promise<BusInstance> {
  const logger = (log ?? keepLog()).logger
  const bus = configure(
    Bus.configure()
      .withTransport(transport)
      .withLogger(() => logger),
  ).build()
  onTestFinished(() => bus.dispose())
  await bus.initialize()
  if (start) await bus.start()
  return bus
}

/** Shares `db`, which stays open. */
export function createTransport(
  db: Db,
  queueName: string,
  options: Partial<Omit<MillraceTransportOptions, 'db' | 'millrace'>> = {},
): MillraceTransport {
  return new MillraceTransport({ db: { ...db, close: async () => {} }, queueName, ...options })
}

/** Reads a message that has to be there. */
export async function read(transport: MillraceTransport): Promise<TransportMessage<BusReceipt>> {
  const message = await transport.readNextMessage()
  if (message === undefined) throw new Error('the transport was stopped')
  return message
}

/** How many messages a queue has, whatever their state. */
export async function countMessages(pool: pg.Pool, queue: string): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::int as count from millrace.messages m
      join millrace.queues q on q.id = m.queue_id where q.name = $1`,
    [queue],
  )
  return rows[0].count
}

/** A promise that a test resolves when it likes. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}
