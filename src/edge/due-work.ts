import { sql } from 'drizzle-orm'
import { isOurs } from '../db/fence.ts'
import type { Db } from '../db/port.ts'
import { runQuery } from '../db/run.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import { locksAreForgotten } from '../locks/purge-locks.ts'
import { sweepIsDue } from '../queues/next-sweep.ts'
import { schedulesAreDue } from '../schedules/next-due.ts'
import { retentionIsDue } from '../streams/retention.ts'
import { attemptsAreOld } from '../webhooks/attempt-retention.ts'
import { webhooksAreDue } from '../webhooks/engine/claim-webhooks.ts'

/** What there is to do in a database, of every kind. */
export interface DueWork {
  /** False: the database belongs to another environment, and nothing is to be done (W7). */
  ours: boolean
  /** The environment that it belongs to. */
  environment: string | null
  webhooks: boolean
  schedules: boolean
  sweep: boolean
  retention: boolean
  attempts: boolean
  locks: boolean
}

/** One statement, so that an idle run makes one request; a foreign database is asked nothing more. */
export async function readDueWork(db: Db): Promise<DueWork> {
  const [row] = await runQuery<DueWork>(
    db,
    sql`select o.ours, i.environment,
        o.ours and ${webhooksAreDue(db)} as webhooks,
        o.ours and ${schedulesAreDue(db)} as schedules,
        o.ours and ${sweepIsDue(db)} as sweep,
        o.ours and ${retentionIsDue(db)} as retention,
        o.ours and ${attemptsAreOld(db)} as attempts,
        o.ours and ${locksAreForgotten(db)} as locks
      from ${db.tables.installation} i cross join (select ${isOurs(db)} as ours) o`,
  )
  if (row === undefined) throw new MillraceError('NOT_MIGRATED', 'the installation row is missing')
  return row
}
