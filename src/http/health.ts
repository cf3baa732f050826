import type { Hono } from 'hono'
import { sql } from 'drizzle-orm'
import { isOurs } from '../db/fence.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import type { ErrorCode } from '../errors/codes.ts'
import { isMillraceError } from '../errors/millrace-error.ts'
import type { Clock } from '../ports.ts'
import type { AppOptions } from './context.ts'
import { asMillraceError } from './problem.ts'
import { resource } from './resource.ts'

/** A platform's probe gives up after some seconds; the answer should come before that. */
const readyTimeoutMs = 5000

/** What `GET /readyz` answers with: 200 when ready, else 503. */
export interface ReadyReport {
  ready: boolean
  /** `ok`, or the code of what is in the way; `asleep`: the process lets it sleep, and has not asked. */
  database: 'ok' | 'asleep' | ErrorCode
  /** `ok`, `pending` when tables are missing, `unknown` while the database was not asked or does not answer. */
  migrations: 'ok' | 'pending' | 'unknown'
  /** How wakes arrive, where the process has a forwarder. */
  mode?: string
  /** The database belongs to another environment: nothing is delivered, fired or claimed. Absent: all is. */
  delivery?: 'foreign_environment'
}

/** `GET /healthz` (the process answers) and `GET /readyz` (so does what it needs). Open to everyone. */
export function healthRoutes(app: Hono, options: Pick<AppOptions, 'db' | 'ports' | 'ready'>): void {
  const ready = options.ready ?? (() => checkDatabase(options.db))
  resource(app, '/healthz', { GET: (c) => c.json({ status: 'ok' }) })
  resource(app, '/readyz', {
    GET: async (c) => {
      const report = await within(options.ports.clock, ready).catch(failed)
      return c.json(report, report.ready ? 200 : 503)
    },
  })
}

/**
 * One round trip: the database answers, a function of the migrations is there, and it belongs to the
 * environment of this process. Another one's is not ready, so that a roll-out with the wrong name stops,
 * though publishing and reading work (W7).
 */
export async function checkDatabase(db: Db): Promise<ReadyReport> {
  const pending: ReadyReport = { ready: false, database: 'ok', migrations: 'pending' }
  const newest = `"${db.schema}".last_offset()`
  try {
    const [row] = await runQuery<{ found: boolean; ours: boolean }>(
      db,
      sql`select to_regprocedure(${newest}::text) is not null as found, ${isOurs(db)} as ours`,
    )
    if (row?.found !== true) return pending
    const ready: ReadyReport = { ready: true, database: 'ok', migrations: 'ok' }
    return row.ours ? ready : { ...ready, ready: false, delivery: 'foreign_environment' }
  } catch (error) {
    if (isMillraceError(error) && error.code === 'NOT_MIGRATED') return pending
    throw error
  }
}

function failed(error: unknown): ReadyReport {
  return { ready: false, database: asMillraceError(error).code, migrations: 'unknown' }
}

async function within(clock: Clock, check: () => Promise<ReadyReport>): Promise<ReadyReport> {
  let timer: ReturnType<Clock['setTimeout']> | undefined
  const timeout = new Promise<ReadyReport>((resolve) => {
    const late: ReadyReport = { ready: false, database: 'DATABASE_UNAVAILABLE', migrations: 'unknown' }
    timer = clock.setTimeout(() => resolve(late), readyTimeoutMs)
  })
  try {
    return await Promise.race([check(), timeout])
  } finally {
    if (timer !== undefined) clock.clearTimeout(timer)
  }
}
