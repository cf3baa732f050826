import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { httpSuite } from '../http/suite/http-suite.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { startWorkerd } from './support/workerd.ts'

const rootKey = 'Root-key-0123456789'

httpSuite('the HTTP API in workerd over neon-http', async () => {
  const database = await createMigratedDatabase()
  const gateway = await startGateway(database.url)
  const db = createNodePostgresDb({ url: database.url })
  const worker = await startWorkerd({
    entry: 'workers/edge.ts',
    bindings: {
      DATABASE_URL: database.url,
      MILLRACE_NEON_GATEWAY: `${gateway.host}:${gateway.port}`,
      MILLRACE_ROOT_KEY: rootKey,
      MILLRACE_ENCRYPTION_KEY: 'a passphrase that is long enough',
    },
    // what is published wakes a queue that nobody consumes: a drain would deliver between the steps of a test
    options: { queueProducers: { MILLRACE_QUEUE: 'wakes' } },
  })
  return {
    fetch: worker.fetch,
    db,
    rootKey,
    async close() {
      await worker.close()
      await gateway.close()
      await db.close()
      await database.drop()
    },
  }
})
