import type { Ports } from '../ports.ts'
import type { Settings } from '../settings.ts'
import { createSealer } from '../webhooks/seal.ts'
import { describeAttempt } from './describe-attempt.ts'
import { encryptionKeyFile, localKey, rootKeyFile } from './local-keys.ts'
import { migrateDatabase, openDatabase } from './open-database.ts'
import { ringAfterPublish } from './ring-after-change.ts'
import { startApi } from './start-api.ts'
import { startDelivery } from './start-delivery.ts'
import { assertPortFree } from './start-http.ts'
import { startSchedules } from './start-schedules.ts'
import { welcome } from './welcome.ts'

/** What {@link startDev} takes. */
export interface DevOptions {
  settings: Settings
  ports: Ports
  /** Prints a line for the person at the terminal. */
  say: (line: string) => void
}

/** A development server that runs. */
export interface RunningDev {
  port: number
  rootKey: string
  stop(): Promise<void>
}

/** What is being sent at the end gets so long to finish. */
const stopWithinMs = 5_000

/**
 * Everything in one process, for a first look and for development: database, tables, HTTP API, forwarder
 * and delivery. Listens on loopback only, and takes http and private webhook targets.
 *
 * @throws INVALID_SETTING, DATABASE_UNAVAILABLE, DATA_FOLDER_IN_USE
 */
export async function startDev({ settings, ports, say }: DevOptions): Promise<RunningDev> {
  const address = { port: settings.port, hostname: '127.0.0.1' }
  await assertPortFree(address)
  const opened = await openDatabase(settings, {
    log: ports.log,
    applicationName: 'millrace dev',
    progress: say,
  })
  const stops: (() => Promise<void>)[] = [() => opened.close()]
  const stop = async (): Promise<void> => {
    for (const step of stops.toReversed()) await step()
  }
  try {
    const { applied } = await migrateDatabase(opened.db, settings)
    if (applied.length > 0) say(`Tables brought up to date: ${applied.length} migrations applied.`)
    const rootKey = settings.rootKey ?? (await localKey(settings.dataDir, rootKeyFile, 'mr_root_'))
    const current = settings.encryptionKey ?? (await localKey(settings.dataDir, encryptionKeyFile, 'mr_enc_'))
    const sealer = await createSealer({ current, previous: settings.previousEncryptionKeys })
    const onAttempt = (report: Parameters<typeof describeAttempt>[0]): void => say(describeAttempt(report))
    const delivery = startDelivery({ db: opened.db, settings, sealer, ports, onAttempt })
    stops.push(() => delivery.stop({ withinMs: stopWithinMs }))
    const schedules = startSchedules({
      db: opened.db,
      forwarder: delivery.forwarder,
      ports,
      poll: settings.poll,
    })
    stops.push(() => schedules.stop())
    const http = await startApi({
      db: opened.db,
      rootKey,
      settings,
      ports,
      sealer,
      running: delivery,
      address,
      afterPublish: ringAfterPublish(delivery.forwarder),
    })
    stops.push(() => http.stop({ withinMs: stopWithinMs }))
    for (const line of welcome({ port: http.port, rootKey, database: opened.description })) say(line)
    return { port: http.port, rootKey, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
