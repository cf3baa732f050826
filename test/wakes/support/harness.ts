import pg from 'pg'
import { vi } from 'vitest'
import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import type { Db, DirectConnection } from '../../../src/db/port.ts'
import { createSystemPorts } from '../../../src/system-ports.ts'
import type { Listener } from '../../../src/wakes/fan-out.ts'
import { createForwarder, type Forwarder, type ForwarderOptions } from '../../../src/wakes/forwarder.ts'
import type { ListenValue } from '../../../src/wakes/mailbox.ts'
import type { Connect } from '../../../src/wakes/open-connection.ts'
import { createTestDatabase } from '../../support/database.ts'
import { createTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'

/** A database, a proxy before it, and forwarders through the proxy. */
export interface Harness {
  url: string
  proxy: TcpProxy
  /** Another program's session on the same database. */
  outside: pg.Pool
  /** Makes a dedicated session through the proxy. */
  connect: Connect
  /** The real clock, real chance, and no log. */
  ports: ReturnType<typeof createSystemPorts>
  /** The database as the rooms see it, past the proxy. */
  db: Db
  /** The dedicated sessions that forwarders have made, oldest first. */
  connections: DirectConnection[]
  /** The LISTENs and UNLISTENs they were given. */
  scripts: string[]
  forwarder(options?: Partial<ForwarderOptions>): Forwarder
  /** Ends the forwarder's session on the server; resolves with how many there were. */
  terminate(): Promise<number>
  /** The forwarder's sessions on the server. */
  sessions(): Promise<number>
  close(): Promise<void>
}

export async function createHarness(): Promise<Harness> {
  const database = await createTestDatabase()
  const { hostname, port } = new URL(database.url)
  const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
  const outside = new pg.Pool({ connectionString: database.url, application_name: 'outside' })
  outside.on('error', () => {})
  const ports = createSystemPorts()
  const scripts: string[] = []
  const connections: DirectConnection[] = []
  const forwarders: Forwarder[] = []
  const db = createNodePostgresDb({ url: database.url })
  const proxied = createNodePostgresDb({ url: proxy.through(database.url), applicationName: 'forwarder' })
  const connect: Connect = async (signal) => {
    const connection = await proxied.connectDirect({ signal })
    connections.push(connection)
    return {
      ...connection,
      execute(script) {
        scripts.push(script)
        return connection.execute(script)
      },
    }
  }
  const count = async (sql: string): Promise<number> => Number((await outside.query(sql)).rows[0].n)
  return {
    url: database.url,
    proxy,
    outside,
    connect,
    ports,
    db,
    connections,
    scripts,
    forwarder(options = {}) {
      const forwarder = createForwarder({
        connect,
        schema: 'millrace',
        ports: createSystemPorts(),
        ...options,
      })
      forwarders.push(forwarder)
      return forwarder
    },
    terminate: () =>
      count(`select count(pg_catalog.pg_terminate_backend(pid)) as n from pg_catalog.pg_stat_activity
        where application_name = 'forwarder' and datname = pg_catalog.current_database()`),
    sessions: () =>
      count(`select count(*) as n from pg_catalog.pg_stat_activity
        where application_name = 'forwarder' and datname = pg_catalog.current_database()`),
    async close() {
      await Promise.all(forwarders.map((forwarder) => forwarder.close()))
      await Promise.all([db.close(), proxied.close(), outside.end()])
      await proxy.close()
      await database.drop()
    },
  }
}

/** The next values of a listener; fails the test rather than to wait for ever. */
export async function take(listener: Listener, count: number): Promise<ListenValue[]> {
  const values: ListenValue[] = []
  while (values.length < count) {
    const result = await soon(
      listener.next(),
      `value ${values.length + 1} of ${count} on ${listener.channel}`,
    )
    if (result.done === true) break
    values.push(result.value)
  }
  return values
}

/** A notification as a listener gets it. */
export function notification(channel: string, payload: string): ListenValue {
  return { kind: 'notification', channel, payload }
}

/** Awaits what must come, for at most ten seconds. */
export async function soon<T>(promise: Promise<T>, what: string): Promise<T> {
  let bound: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    bound = setTimeout(() => reject(new Error(`not within ten seconds: ${what}`)), 10_000)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(bound)
  }
}

/** Polls until the check passes, for at most ten seconds. */
export function eventually(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: 10_000, interval: 5 })
}
