import { assertMigrated } from '../db/migrate/check-migrations.ts'
import { readMigrationFiles } from '../db/migrate/node-files.ts'
import { ringFirst } from '../doorbell/ring-first.ts'
import { MillraceError } from '../errors/millrace-error.ts'
import type { PublishInfo } from '../http/context.ts'
import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import type { Forwarder } from '../wakes/forwarder.ts'
import type { Sealer } from '../webhooks/seal.ts'
import { forwarderOf } from './forwarder-of.ts'
import { openDatabase, type OpenedDatabase } from './open-database.ts'
import { openSealer } from './open-sealer.ts'
import { ringAfterPublish } from './ring-after-change.ts'
import { startApi } from './start-api.ts'
import { startDelivery, type RunningDelivery } from './start-delivery.ts'
import { assertPortFree } from './start-http.ts'
import { startSchedules } from './start-schedules.ts'

/** What {@link startServe} takes. */
export interface ServeOptions {
  settings: Settings
  ports: Ports
  /** Where it listens. Default `0.0.0.0`: from everywhere. */
  host?: string
  /** Delivers and fires schedules too, as a forwarder does. Default: it only answers. */
  deliver?: boolean
}

/** An API server that runs. */
export interface RunningServe {
  port: number
  stop(): Promise<void>
}

/** Requests, and what is being sent, get so long to finish. */
const stopWithinMs = 8_000

/**
 * The HTTP API as a process: publishes and reads, and delivers if told to.
 *
 * @throws INVALID_SETTING without DATABASE_URL or MILLRACE_ROOT_KEY, or with a port that is taken; NOT_MIGRATED,
 *   DATABASE_UNAVAILABLE
 */
export async function startServe(options: ServeOptions): Promise<RunningServe> {
  const { settings, ports, host = '0.0.0.0' } = options
  const rootKey = requireSettings(settings)
  const address = { port: settings.port, hostname: host }
  await assertPortFree(address)
  const sealer = await openSealer(settings, ports.log)
  const opened = await openDatabase(settings, { log: ports.log, applicationName: 'millrace serve' })
  const stops: (() => unknown)[] = [() => opened.close()]
  const stop = async (): Promise<void> => {
    for (const step of stops.splice(0).toReversed()) await step()
  }
  try {
    await assertMigrated(opened.db, await readMigrationFiles())
    const running = startBackground({ ...options, opened, sealer, stops })
    const http = await startApi({
      db: opened.db,
      rootKey,
      settings,
      ports,
      sealer,
      running,
      address,
      afterPublish: afterPublish(options, running.forwarder),
    })
    stops.push(() => http.stop({ withinMs: stopWithinMs }))
    const facts = { port: http.port, database: opened.description, delivers: options.deliver === true }
    ports.log.info(facts, 'serving')
    return { port: http.port, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function requireSettings({ databaseUrl, rootKey }: Settings): string {
  const missing = databaseUrl === null ? 'DATABASE_URL' : rootKey === null ? 'MILLRACE_ROOT_KEY' : null
  if (missing === null) return rootKey as string
  const text = `${missing} is not set (\`millrace dev\` needs neither an address nor a key)`
  throw new MillraceError('INVALID_SETTING', text, { details: { setting: missing } })
}

type Background = ServeOptions & { opened: OpenedDatabase; sealer: Sealer | null; stops: (() => unknown)[] }

/** The LISTEN connection, for those who wait for events; with `deliver` also the engine and the schedules. */
function startBackground(given: Background): Pick<RunningDelivery, 'forwarder'> & Partial<RunningDelivery> {
  const { settings, ports, opened, sealer, stops } = given
  const { db } = opened
  if (given.deliver === true) {
    const delivery = startDelivery({ db, settings, sealer, ports })
    stops.push(() => delivery.stop({ withinMs: stopWithinMs }))
    const schedules = startSchedules({ db, forwarder: delivery.forwarder, ports, poll: settings.poll })
    stops.push(() => schedules.stop())
    return delivery
  }
  const forwarder = forwarderOf({ db, settings, ports })
  forwarder.start()
  stops.push(() => forwarder.close())
  return { forwarder }
}

function afterPublish({ settings, ports, deliver }: ServeOptions, forwarder: Forwarder) {
  if (deliver === true) return ringAfterPublish(forwarder)
  const ring = ringFirst(settings.doorbell, ports, async () => {})
  return (info: PublishInfo): void => void ring(info)
}
