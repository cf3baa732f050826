import { sql } from 'drizzle-orm'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { checkDatabase, type ReadyReport } from '../http/health.ts'

/**
 * What `/readyz` says at the edge. A database of another environment is no reason to take the app out of
 * service, since publishing and reading work (W7), but it is told.
 */
export async function checkEdge(db: Db, environment: string | null): Promise<ReadyReport> {
  const report = await checkDatabase(db)
  if (!report.ready) return report
  const [row] = await runQuery<{ ours: boolean }>(
    db,
    sql`select i.environment is not distinct from ${environment}::text as ours from ${db.tables.installation} i`,
  )
  return row?.ours === true ? report : { ...report, delivery: 'foreign_environment' }
}
