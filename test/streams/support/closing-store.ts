import { createNodeNeonWsDb } from '../../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../../src/db/drivers/node-postgres.ts'
import { createMillrace } from '../../../src/millrace.ts'

/*
 * A process with a store in full use that closes it, prints how what was in flight ended, and has nothing left
 * that could keep it alive.
 */
const [url = '', gateway = ''] = process.argv.slice(2)
const [host = '', port = ''] = gateway.split(':')
const db =
  gateway === ''
    ? createNodePostgresDb({ url })
    : createNodeNeonWsDb({ url, gateway: { host, port: Number(port) } })
const millrace = createMillrace({ db })
const stream = millrace.stream('s')
await stream.publish({ type: 't', data: 1 })
const subscriptions = Array.from({ length: 20 }, (_, n) => stream.consumer(`c${n}`).subscribe())
await Promise.all(subscriptions.map((subscription) => subscription.next()))
const listeners = Array.from({ length: 5 }, (_, n) => millrace.listen(`channel ${n}`))
await Promise.all(listeners.map(({ ready }) => ready))
const ends = Promise.allSettled([
  ...subscriptions.map((subscription) => subscription.next()),
  ...listeners.map((listener) => listener.next()),
  ...Array.from({ length: 30 }, () => stream.publish({ type: 't', data: 2 })),
  ...Array.from({ length: 10 }, () => stream.read()),
])
await millrace.close()
const codes = (await ends).map((outcome) =>
  outcome.status === 'fulfilled' ? 'done' : (outcome.reason as { code?: string }).code,
)
process.stdout.write(`${JSON.stringify([...new Set(codes)])}\n`)
