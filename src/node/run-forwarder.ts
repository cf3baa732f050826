import { assertOurs } from '../db/fence.ts'
import { assertMigrated } from '../db/migrate/check-migrations.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Db } from '../db/port.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import type { ClaimReport } from '../webhooks/engine/engine.ts'
import { openSealer } from './open-sealer.ts'
import { openDatabase } from './open-database.ts'
import { startDelivery } from './start-delivery.ts'
import { startSchedules } from './start-schedules.ts'

/** What is being sent at the end gets so long to finish; systemd and Docker kill after 90 and 10 s. */
const stopWithinMs = 8_000

/** A forwarder that runs. */
export interface RunningForwarder {
  /** Rejects with WRONG_ENVIRONMENT when another environment has adopted the database meanwhile (W7). */
  fenced: Promise<never>
  stop(): Promise<void>
}

/**
 * The worker for a VM: holds the one LISTEN connection and delivers. Several may run on one database.
 *
 * @throws INVALID_SETTING without DATABASE_URL, NOT_MIGRATED, WRONG_ENVIRONMENT, DATABASE_UNAVAILABLE
 */
export async function startForwarder(settings: Settings, ports: Ports): Promise<RunningForwarder> {
  if (settings.databaseUrl === null) {
    throw new MillraceError(
      'INVALID_SETTING',
      'DATABASE_URL is not set: a forwarder works beside other processes',
    )
  }
  const sealer = await openSealer(settings, ports.log)
  const opened = await openDatabase(settings, { log: ports.log, applicationName: 'millrace forwarder' })
  try {
    await assertMigrated(opened.db, await readMigrationFiles())
    await assertOurs(opened.db)
  } catch (error) {
    await opened.close()
    throw error
  }
  const fence = createFence(opened.db)
  const delivery = startDelivery({ db: opened.db, settings, sealer, ports, onClaim: fence.onClaim })
  const schedules = startSchedules({ db: opened.db, forwarder: delivery.forwarder, ports })
  ports.log.info({ database: opened.description }, 'delivering')
  return {
    fenced: fence.fenced,
    async stop() {
      await schedules.stop()
      await delivery.stop({ withinMs: stopWithinMs })
      await opened.close()
    },
  }
}

/** Each claim tells whose the database is; the row is read once more, to name both in the error. */
function createFence(db: Db): { fenced: Promise<never>; onClaim(report: ClaimReport): void } {
  let refuse: (error: unknown) => void = () => {}
  const fenced = new Promise<never>((_, reject) => (refuse = reject))
  fenced.catch(() => {})
  return {
    fenced,
    onClaim({ foreignEnvironment }) {
      if (foreignEnvironment !== null) assertOurs(db).catch(refuse)
    },
  }
}
