import { expect, it } from 'vitest'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createForwarder } from '../../src/wakes/forwarder.ts'
import { createTestDatabase } from '../support/database.ts'
import { startGateway } from '../support/gateway.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'
import { take } from './support/harness.ts'

const long = process.env.MILLRACE_LONG_TESTS === '1'
if (!long) process.stderr.write('not run: half-open WebSocket in real time, 20 s (MILLRACE_LONG_TESTS=1)\n')

it.runIf(long)(
  'N2: a WebSocket that falls silent is noticed within 30 s by its own pings',
  { timeout: 90_000 },
  async () => {
    const database = await createTestDatabase()
    const gateway = await startGateway(database.url)
    const proxy = await createTcpProxy(gateway)
    const db = createNodeNeonWsDb({ url: database.url, gateway: proxy })
    const ports = createSystemPorts()
    const forwarder = createForwarder({
      connect: (signal) => db.connectDirect({ signal }),
      schema: 'millrace',
      ports,
    })
    try {
      const listener = forwarder.listen('c')
      forwarder.start()
      await forwarder.waitFor('listening')
      const from = performance.now()
      proxy.blackhole()
      await forwarder.waitFor('degraded')
      expect(performance.now() - from).toBeLessThan(30_000)
      proxy.heal()
      await forwarder.waitFor('listening')
      expect(await take(listener, 1)).toEqual([{ kind: 'reconnected' }])
    } finally {
      await forwarder.close()
      await db.close()
      await proxy.close()
      await gateway.close()
      await database.drop()
    }
  },
)
