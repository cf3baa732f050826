// A forwarder in a process of its own, subscribed to everything: what a publish wakes.
import { createNodePostgresDb } from '../src/db/drivers/node-postgres.ts'
import { createSystemPorts } from '../src/system-ports.ts'
import { createForwarder } from '../src/wakes/forwarder.ts'

const db = createNodePostgresDb({ url: process.argv[2]! })
const forwarder = createForwarder({
  connect: (signal) => db.connectDirect({ signal }),
  schema: db.schema,
  ports: createSystemPorts(),
})
forwarder.onWake(() => {})
forwarder.start()
await forwarder.waitFor('listening')
process.send?.('listening')
process.on('disconnect', () => process.exit())
