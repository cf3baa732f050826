import { createPgliteDb } from '../../../src/db/drivers/pglite.ts'
import { migrate } from '../../../src/db/migrate/migrate.ts'
import { readMigrationFiles } from '../../../src/db/migrate/node-files.ts'
import { createMillrace } from '../../../src/millrace.ts'

/* A process that publishes, saves what it has read, says so, and waits to be killed. */
const millrace = createMillrace({ db: createPgliteDb({ dataDir: process.argv[2] }) })
await migrate(millrace.db, { files: await readMigrationFiles() })
const stream = millrace.stream('s')
await stream.publishMany([1, 2, 3].map((data) => ({ type: 't', data })))
const subscription = stream.consumer('c').subscribe()
await subscription.next()
await subscription.next()
process.stdout.write(`saved ${await subscription.save()}\n`)
setInterval(() => {}, 60_000)
