import { serve } from '@hono/node-server'
import type { Hono } from 'hono'
import type { AddressInfo } from 'node:net'
import { createNeonHttpDb } from '../../src/db/drivers/neon-http.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createApp } from '../../src/http/app.ts'
import { workRoutes } from '../../src/http/work-routes.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createSealer } from '../../src/webhooks/seal.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { httpSuite } from './suite/http-suite.ts'

const rootKey = 'Root-key-0123456789'

httpSuite('the HTTP API in Node, through a socket, over node-postgres', async () => {
  const database = await createMigratedDatabase()
  const db = createNodePostgresDb({ url: database.url })
  const server = await listen(await appOn(db))
  return {
    fetch: server.fetch,
    db,
    rootKey,
    async close() {
      await server.close()
      await db.close()
      await database.drop()
    },
  }
})

httpSuite('the HTTP API in Node over neon-http', async () => {
  const database = await createMigratedDatabase()
  const gateway = await startGateway(database.url)
  const overHttp = createNeonHttpDb({ url: database.url, gateway })
  const db = createNodePostgresDb({ url: database.url })
  const app = await appOn(overHttp)
  return {
    fetch: async (request) => app.fetch(request),
    db,
    rootKey,
    async close() {
      await overHttp.close()
      await gateway.close()
      await db.close()
      await database.drop()
    },
  }
})

async function appOn(db: Db): Promise<Hono> {
  const sealer = await createSealer({ current: 'a passphrase that is long enough' })
  return createApp({ db, rootKey, ports: createSystemPorts(), targetPolicy: {}, sealer, workRoutes })
}

/** Serves an app on a free port; requests go there whatever host they name. */
async function listen(app: Hono) {
  const { server, port } = await new Promise<{ server: ReturnType<typeof serve>; port: number }>(
    (resolve) => {
      const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (info: AddressInfo) =>
        resolve({ server, port: info.port }),
      )
    },
  )
  return {
    fetch(request: Request): Promise<Response> {
      const url = new URL(request.url)
      url.host = `127.0.0.1:${port}`
      // `duplex` is what Node's fetch wants with a streamed body
      return fetch(new Request(url, new Request(request, { duplex: 'half' } as RequestInit)))
    },
    close: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  }
}
