import { assertOurs } from '../db/fence.ts'
import { assertMigrated } from '../db/migrate/check-migrations.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import type { Db } from '../db/port.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import type { ClaimReport } from '../webhooks/engine/engine.ts'
import { createForwarderApp } from './forwarder-app.ts'
import { openSealer } from './open-sealer.ts'
import { openDatabase, type OpenedDatabase } from './open-database.ts'
import { startDelivery, type RunningDelivery } from './start-delivery.ts'
import { assertPortFree, startHttp } from './start-http.ts'
import { startSchedules } from './start-schedules.ts'

/** What is being sent at the end gets so long to finish; systemd and Docker kill after 90 and 10 s. */
const stopWithinMs = 8_000

/** A forwarder that runs. */
export interface RunningForwarder {
  /** Rejects with WRONG_ENVIRONMENT when another environment has adopted the database meanwhile (W7). */
  fenced: Promise<never>
  /** Where it answers rings, probes and scrapes; null: nowhere. */
  port: number | null
  stop(): Promise<void>
}

/**
 * The worker for a VM: holds the one LISTEN connection, delivers and fires schedules. Several may run on one
 * database.
 *
 * @throws INVALID_SETTING without DATABASE_URL, or with a port that is taken; NOT_MIGRATED, WRONG_ENVIRONMENT,
 *   DATABASE_UNAVAILABLE
 */
export async function startForwarder(settings: Settings, ports: Ports): Promise<RunningForwarder> {
  const { databaseUrl, doorbell, poll } = settings
  if (databaseUrl === null) {
    throw new MillraceError(
      'INVALID_SETTING',
      'DATABASE_URL is not set: a forwarder works beside other processes',
    )
  }
  if (doorbell.port !== null) await assertPortFree(addressOf(doorbell.host, doorbell.port))
  const sealer = await openSealer(settings, ports.log)
  const opened = await openDatabase(settings, { log: ports.log, applicationName: 'millrace forwarder' })
  const stops: (() => unknown)[] = [() => opened.close()]
  const stop = async (): Promise<void> => {
    for (const step of stops.splice(0).toReversed()) await step()
  }
  try {
    await assertMigrated(opened.db, await readMigrationFiles())
    await assertOurs(opened.db)
    const fence = createFence(opened.db)
    const delivery = startDelivery({ db: opened.db, settings, sealer, ports, onClaim: fence.onClaim })
    stops.push(() => delivery.stop({ withinMs: stopWithinMs }))
    const schedules = startSchedules({ db: opened.db, forwarder: delivery.forwarder, ports, poll })
    stops.push(() => schedules.stop())
    const listener = await listen({ settings, ports, opened, delivery })
    stops.push(() => listener?.stop())
    warnOfSleep(settings, ports)
    ports.log.info({ database: opened.description, ...(listener && { port: listener.port }) }, 'delivering')
    return { fenced: fence.fenced, port: listener?.port ?? null, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Listening {
  settings: Settings
  ports: Ports
  opened: OpenedDatabase
  delivery: RunningDelivery
}

async function listen({ settings, ports, opened, delivery }: Listening) {
  const { port, host } = settings.doorbell
  if (port === null) return null
  const { forwarder, metrics } = delivery
  const { app, close } = createForwarderApp({ db: opened.db, settings, ports, forwarder, metrics })
  const http = await startHttp(app, addressOf(host, port))
  return {
    port: http.port,
    async stop() {
      close()
      await http.stop({ withinMs: stopWithinMs })
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

function addressOf(hostname: string, port: number) {
  return { port, hostname, setting: 'MILLRACE_DOORBELL_PORT' }
}

/** Without a doorbell it is only the clock that brings it back to what others have published. */
function warnOfSleep({ sleep, doorbell }: Settings, { log }: Ports): void {
  if (sleep === null || doorbell.secret !== null) return
  const facts = { maxMs: sleep.maxMs }
  log.warn(facts, 'MILLRACE_DOORBELL_SECRET is not set: what is published while it sleeps waits up to maxMs')
}
