import { describe, expect, it, vi } from 'vitest'
import { createNodeNeonWsDb } from '../../src/db/drivers/neon-ws-node.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { countStatements, kindOf } from '../delivery/support/counting-db.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'
import { createSilentNetwork, whyNoNetwork, type SilentNetwork } from './support/silent-network.ts'

/*
 * Real sockets and real time: what is lost here is noticed by the sockets' own means, which no clock of ours
 * drives. The tests wait side by side.
 */
const boundMs = 30_000
const noNetwork = whyNoNetwork()
if (noNetwork !== null) process.stderr.write(`not run: TCP sockets that fall silent (${noNetwork})\n`)

/** Takes what is to be done at the end of a test; the last comes first. */
type AtEnd = (cleanUp: () => Promise<void>) => void

/** A database, a store that reaches it by `open`, and a publisher beside the hole. */
async function createWorld(atEnd: AtEnd, open: (url: string) => Promise<Db>) {
  const database = await createMigratedDatabase()
  atEnd(() => database.drop())
  const outside = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
  atEnd(() => outside.close())
  const millrace = createMillrace({ db: await open(database.url) })
  atEnd(() => millrace.close())
  return {
    millrace,
    publish: (stream: string, ...data: number[]) =>
      outside.stream(stream).publishMany(data.map((value) => ({ type: 't', data: value }))),
  }
}

/** Follows a stream from a consumer of its own, and keeps all that it sees. */
function follow(millrace: Millrace, stream: string, consumer: string): number[] {
  const seen: number[] = []
  const subscription = millrace.stream(stream).consumer(consumer).subscribe()
  void (async () => {
    for await (const { data } of subscription) seen.push(data as number)
  })()
  return seen
}

async function overTheNetwork(atEnd: AtEnd, url: string): Promise<SilentNetwork> {
  const { hostname, port } = new URL(url)
  const network = await createSilentNetwork({ host: hostname, port: Number(port || 5432) })
  atEnd(() => network.close())
  return network
}

const eventually = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: boundMs, interval: 20 })

/** Loses the LISTEN socket in silence, and sees that everyone gets everything, once, within the bound. */
async function loseAndHeal(
  { millrace, publish }: Awaited<ReturnType<typeof createWorld>>,
  hole: { silence(): void; heal(): void },
): Promise<void> {
  const { forwarder } = millrace
  const heard: string[] = []
  void (async () => {
    for await (const value of millrace.listen('c')) heard.push(value.kind)
  })()
  const followers = ['s', 's', 'other'].map((stream, n) => follow(millrace, stream, `c${n}`))
  await forwarder.waitFor('listening')
  for (const stream of ['s', 'other']) await publish(stream, 1)
  for (const seen of followers) await eventually(() => expect(seen).toEqual([1]))

  hole.silence()
  const from = performance.now()
  for (const stream of ['s', 'other']) await publish(stream, 2, 3)
  await forwarder.waitFor('degraded', { signal: AbortSignal.timeout(boundMs) })
  expect(followers).toEqual([[1], [1], [1]])
  hole.heal()
  for (const seen of followers) await eventually(() => expect(seen).toEqual([1, 2, 3]))
  await forwarder.waitFor('listening')
  const tookMs = performance.now() - from
  process.stderr.write(
    `${millrace.db.driver}: a silent LISTEN socket was healed after ${Math.round(tookMs)} ms\n`,
  )
  expect(tookMs).toBeLessThan(boundMs)
  // a busy machine may lose it once more: told again then, and of nothing else
  await eventually(() => expect([...new Set(heard)]).toEqual(['reconnected']))
  for (const stream of ['s', 'other']) await publish(stream, 4)
  for (const seen of followers) await eventually(() => expect(seen).toEqual([1, 2, 3, 4]))
  await forwarder.waitFor('listening')
}

describe.concurrent('a connection that falls silent, without an end or a reset', { timeout: 150_000 }, () => {
  it.runIf(noNetwork === null)(
    'N2, S7: over TCP is noticed by its keepalive, and subscribers get everything within 30 s',
    async ({ onTestFinished: atEnd }) => {
      let network: SilentNetwork | undefined
      const world = await createWorld(atEnd, async (url) => {
        network = await overTheNetwork(atEnd, url)
        return createNodePostgresDb({ url: network.through(url) })
      })
      const lost: unknown[] = []
      world.millrace.forwarder.onMode(() => lost.push(world.millrace.forwarder.lastError?.cause))
      await loseAndHeal(world, network!)
      expect(lost.filter(Boolean)).toEqual([expect.objectContaining({ code: 'ETIMEDOUT' })])
    },
  )

  it.runIf(noNetwork === null)(
    'S7: with a read under way on it holds up its subscriber for no more than 30 s',
    async ({ onTestFinished: atEnd }) => {
      let network: SilentNetwork | undefined
      let spy: ReturnType<typeof countStatements> | undefined
      const { millrace, publish } = await createWorld(atEnd, async (url) => {
        network = await overTheNetwork(atEnd, url)
        spy = countStatements(createNodePostgresDb({ url: network.through(url) }))
        return spy.db
      })
      const seen = follow(millrace, 's', 'c')
      await millrace.forwarder.waitFor('listening')
      await publish('s', 1)
      await eventually(() => expect(seen).toEqual([1]))
      let from = 0
      spy!.before(async (text) => {
        if (from > 0 || kindOf(text) !== 'read') return
        from = performance.now()
        // the LISTEN socket, and the one on which this read is about to be sent
        expect(await network!.forget()).toBeGreaterThanOrEqual(2)
      })
      await publish('s', 2)
      await eventually(() => expect(from).toBeGreaterThan(0))
      await publish('s', 3)
      await eventually(() => expect(seen).toEqual([1, 2, 3]))
      expect(performance.now() - from).toBeLessThan(boundMs)
      await millrace.forwarder.waitFor('listening')
      await publish('s', 4)
      await eventually(() => expect(seen).toEqual([1, 2, 3, 4]))
    },
  )

  it('N2, S7: over a WebSocket is noticed by its pings, and subscribers get everything within 30 s', async ({
    onTestFinished: atEnd,
  }) => {
    let proxy: Awaited<ReturnType<typeof createTcpProxy>> | undefined
    const world = await createWorld(atEnd, async (url) => {
      const gateway = await startGateway(url)
      proxy = await createTcpProxy(gateway)
      atEnd(() => gateway.close())
      atEnd(() => proxy!.close())
      return createNodeNeonWsDb({ url, gateway: proxy })
    })
    await loseAndHeal(world, { silence: () => proxy!.blackhole(), heal: () => proxy!.heal() })
  })
})
