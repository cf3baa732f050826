import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createApp } from '../../src/http/app.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { startDelivery } from '../../src/node/start-delivery.ts'
import { startHttp } from '../../src/node/start-http.ts'
import { readSettings } from '../../src/settings.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createMigratedDatabase } from './migrated.ts'

/** The real API on a port and a database of its own. */
export interface ApiServer {
  url: string
  rootKey: string
  db: Db
  databaseUrl: string
  /** Ends the HTTP server only, as a crash would: open connections are cut. The database stays. */
  stopHttp(): Promise<void>
  /** Starts it again on the same port. */
  startHttp(): Promise<void>
  close(): Promise<void>
}

const stopping = { withinMs: 2000 }

/** @param options.deliver also deliver to webhooks, http and private targets included. Default false. */
export async function startApiServer(options: { deliver?: boolean } = {}): Promise<ApiServer> {
  const database = await createMigratedDatabase()
  const db = createNodePostgresDb({ url: database.url })
  const ports = createSystemPorts()
  const rootKey = 'mr_root_for_these_tests'
  const settings = readSettings({ DATABASE_URL: database.url, MILLRACE_ALLOW_INSECURE_TARGETS: '1' })
  const delivery = options.deliver === true ? startDelivery({ db, settings, sealer: null, ports }) : null
  const app = createApp({
    db,
    rootKey,
    ports,
    targetPolicy: { allowInsecure: true },
    sealer: null,
    workRoutes,
    ...(delivery === null ? {} : { delivery: delivery.delivery }),
  })
  let http = await startHttp(app, { port: 0, hostname: '127.0.0.1' })
  const { port } = http
  return {
    url: `http://127.0.0.1:${port}`,
    rootKey,
    db,
    databaseUrl: database.url,
    stopHttp: () => http.stop({ withinMs: 0 }),
    async startHttp() {
      http = await startHttp(app, { port, hostname: '127.0.0.1' })
    },
    async close() {
      await delivery?.stop(stopping)
      await http.stop(stopping)
      await db.close()
      await database.drop()
    },
  }
}
