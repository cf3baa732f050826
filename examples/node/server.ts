// Millrace on one server: the HTTP API and the delivery in one process.
// DATABASE_URL=… MILLRACE_ROOT_KEY=… MILLRACE_ENCRYPTION_KEY=… node --import tsx examples/node/server.ts
import { createApp } from '../../src/http/app.ts'
import { createJsonLog } from '../../src/node/log.ts'
import { migrateDatabase, openDatabase } from '../../src/node/open-database.ts'
import { openSealer } from '../../src/node/open-sealer.ts'
import { startDelivery } from '../../src/node/start-delivery.ts'
import { startHttp } from '../../src/node/start-http.ts'
import { untilStopped } from '../../src/node/until-stopped.ts'
import { readSettings } from '../../src/settings.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { targetPolicyOf } from '../../src/webhooks/allowed-targets.ts'

const settings = readSettings(process.env)
const ports = createSystemPorts(createJsonLog())
const { db, close } = await openDatabase(settings, { log: ports.log, applicationName: 'millrace' })
await migrateDatabase(db, settings)
const sealer = await openSealer(settings, ports.log)
const delivery = startDelivery({ db, settings, sealer, ports })
const targetPolicy = targetPolicyOf(settings)
const app = createApp({ db, rootKey: settings.rootKey ?? '', ports, targetPolicy, sealer })
const http = await startHttp(app, { port: settings.port, hostname: '0.0.0.0' })
ports.log.info({ port: http.port }, 'listening')

await untilStopped()
await http.stop({ withinMs: 5_000 })
await delivery.stop({ withinMs: 5_000 })
await close()
