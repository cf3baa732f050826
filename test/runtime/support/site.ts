import { vi } from 'vitest'
import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../../src/db/port.ts'
import type { WorkerOptions } from 'miniflare'
import { startGateway } from '../../support/gateway.ts'
import { createMigratedDatabase } from '../../support/migrated.ts'
import type { MeasuredInvocation } from './measure.ts'
import { startWorkerd, type Workerd } from './workerd.ts'

/** The edge app on a database of its own, in one or more workers, each with the platform's limits. */
export interface Site {
  db: Db
  databaseUrl: string
  workerd: Workerd
  /** Sends a request with the root key to the first worker; throws unless it is answered with 2xx. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** What each invocation of the first worker did. */
  invocations(): Promise<MeasuredInvocation[]>
  /** Resolves once every invocation of the first worker has ended, with what each did. */
  settled(): Promise<MeasuredInvocation[]>
  /** How many statements an invocation sent to the database. */
  statements(invocation: MeasuredInvocation): number
  close(): Promise<void>
}

const rootKey = 'Root-key-0123456789'
export const encryptionKey = 'a passphrase that is long enough'

/** How to start {@link startSite}. */
export interface SiteOptions {
  bindings?: Record<string, string>
  options?: Partial<WorkerOptions>
  /** Workers on the same database, by name; requests go to the first. Default `['edge']`. */
  workers?: readonly string[]
  /** Their entry file. Default: the worker that is deployed. */
  entry?: string
}

export async function startSite(given: SiteOptions = {}): Promise<Site> {
  const database = await createMigratedDatabase()
  const gateway = await startGateway(database.url)
  const db = createNodePostgresDb({ url: database.url })
  const workerd = await startWorkerd(
    ...(given.workers ?? ['edge']).map((name) => ({
      entry: given.entry ?? 'test/runtime/support/measured-edge.ts',
      name,
      bindings: {
        DATABASE_URL: database.url,
        MILLRACE_NEON_GATEWAY: `${gateway.host}:${gateway.port}`,
        MILLRACE_ROOT_KEY: rootKey,
        MILLRACE_ENCRYPTION_KEY: encryptionKey,
        MILLRACE_ALLOW_INSECURE_TARGETS: '1',
        ...given.bindings,
      },
      ...(given.options === undefined ? {} : { options: given.options }),
    })),
  )
  const invocations = async (): Promise<MeasuredInvocation[]> =>
    (await (await workerd.fetch(new Request('http://edge/measured'))).json()) as MeasuredInvocation[]
  return {
    db,
    databaseUrl: database.url,
    workerd,
    invocations,
    call: (method, path, body) => call(workerd, method, path, body),
    settled: () =>
      vi.waitFor(
        async () => {
          const seen = await invocations()
          if (!seen.every(({ ended }) => ended)) throw new Error('an invocation goes on and on')
          return seen
        },
        { timeout: 40_000, interval: 50 },
      ),
    statements: ({ requests }) => requests[`${gateway.host}:${gateway.port}`] ?? 0,
    async close() {
      await workerd.close()
      await gateway.close()
      await db.close()
      await database.drop()
    },
  }
}

async function call(
  workerd: Workerd,
  method: string,
  path: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  const response = await workerd.fetch(new Request(`http://edge${path}`, init))
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}
