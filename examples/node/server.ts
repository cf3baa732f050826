// Millrace on one server: the HTTP API, the delivery and the schedules in one process.
// DATABASE_URL=… MILLRACE_ROOT_KEY=… MILLRACE_ENCRYPTION_KEY=… node server.ts
import { createApp } from 'millrace/http'
import { workRoutes } from 'millrace/http/work'
import {
  createJsonLog,
  migrateDatabase,
  openDatabase,
  openSealer,
  startDelivery,
  startHttp,
  startSchedules,
  untilStopped,
  targetPolicyOf,
} from 'millrace/node'
import { createSystemPorts } from 'millrace/ports'
import { readSettings } from 'millrace/settings'

const settings = readSettings(process.env)
const ports = createSystemPorts(createJsonLog())
const { db, close } = await openDatabase(settings, { log: ports.log, applicationName: 'millrace' })
await migrateDatabase(db, settings)
const sealer = await openSealer(settings, ports.log)
const delivery = startDelivery({ db, settings, sealer, ports })
const schedules = startSchedules({ db, forwarder: delivery.forwarder, ports })
const targetPolicy = targetPolicyOf(settings)
const shutdown = new AbortController()
const app = createApp({
  db,
  rootKey: settings.rootKey ?? '',
  ports,
  targetPolicy,
  sealer,
  workRoutes,
  shutdown: shutdown.signal,
})
const http = await startHttp(app, { port: settings.port, hostname: '0.0.0.0' })
ports.log.info({ port: http.port }, 'listening')

await untilStopped()
shutdown.abort() // open streams and long polls end now, and are not cut
await http.stop({ withinMs: 5_000 })
await schedules.stop()
await delivery.stop({ withinMs: 5_000 })
await close()
