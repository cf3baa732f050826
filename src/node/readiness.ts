import type { Db } from '../db/port.ts'
import { checkDatabase, type ReadyReport } from '../http/health.ts'
import type { Forwarder } from '../wakes/forwarder.ts'

/**
 * What `/readyz` says of a process with a forwarder. While that sleeps the database is not asked: a probe every
 * few seconds would keep it awake.
 */
export async function readiness(
  db: Db,
  { mode, lastError }: Pick<Forwarder, 'mode' | 'lastError'>,
): Promise<ReadyReport> {
  if (mode !== 'sleeping') return { ...(await checkDatabase(db)), mode }
  if (lastError === undefined) return { ready: true, database: 'asleep', migrations: 'unknown', mode }
  return { ready: false, database: lastError.code, migrations: 'unknown', mode }
}
