import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Client } from 'undici'
import { createConnections } from '../../src/webhooks/node-connections.ts'
import { startReceiver, type Receiver } from './support/receiver.ts'

describe('connections', () => {
  const open: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of open.splice(0).toReversed()) await close()
  })

  async function start(keepAliveTimeout = 4_000) {
    const server = await startReceiver((_request, response) => void response.end())
    open.push(() => server.close())
    const connections = createConnections({ keepAliveTimeout, keepAliveTimeoutThreshold: 0 })
    open.push(() => connections.destroy())
    return { server, connections }
  }

  async function use(client: Client): Promise<void> {
    const { body } = await client.request({ path: '/', method: 'POST' })
    await body.dump()
  }

  const lent = ({ origin }: Receiver, connections: ReturnType<typeof createConnections>, count: number) =>
    Array.from({ length: count }, () => connections.take(origin))

  it('are lent to one at a time, the one used last first, so that the others may end', async () => {
    const { server, connections } = await start()
    const [a, b] = lent(server, connections, 2)
    expect(a).not.toBe(b)
    await Promise.all([use(a!), use(b!)])
    connections.giveBack(server.origin, a!)
    connections.giveBack(server.origin, b!)
    expect(lent(server, connections, 2)).toEqual([b, a])
  })

  it('that end while nobody has them are forgotten', async () => {
    const { server, connections } = await start()
    const [a, b] = lent(server, connections, 2)
    await Promise.all([use(a!), use(b!)])
    connections.giveBack(server.origin, a!)
    const ended = vi.fn<() => void>()
    for (const client of [a!, b!]) client.on('disconnect', ended)
    await server.close()
    await vi.waitFor(() => expect(ended).toHaveBeenCalledTimes(2), { timeout: 10_000 })
    await vi.waitFor(() => expect(a!.destroyed).toBe(true), { timeout: 10_000 })
    // whoever has the other has something to send on it
    expect(b!.closed).toBe(false)
    connections.giveBack(server.origin, b!)
    expect(lent(server, connections, 2)).not.toContain(a)
  })

  it('to a host that cannot be reached, or breaks off, are forgotten once the request is given up', async () => {
    const { server, connections } = await start()
    const exchange = (client: Client): Promise<unknown> =>
      new Promise((resolve) => {
        const over = (): void => {
          connections.giveBack(server.origin, client)
          resolve(client)
        }
        client.dispatch(
          { path: '/', method: 'POST' },
          { onRequestStart() {}, onResponseEnd: over, onResponseError: over },
        )
      })
    const [kept] = lent(server, connections, 1)
    await exchange(kept!)
    expect(lent(server, connections, 1)).toEqual([kept])
    await server.close()
    await exchange(kept!)
    await vi.waitFor(() => expect(kept!.destroyed).toBe(true), { timeout: 10_000 })
    const [refused] = lent(server, connections, 1)
    expect(refused).not.toBe(kept)
    await exchange(refused!)
    await vi.waitFor(() => expect(refused!.destroyed).toBe(true), { timeout: 10_000 })
  })

  it('all end when they are destroyed, also those that are lent', async () => {
    const { server, connections } = await start()
    const clients = lent(server, connections, 3)
    await Promise.all(clients.map(use))
    connections.giveBack(server.origin, clients[0]!)
    await connections.destroy()
    expect(clients.map(({ destroyed }) => destroyed)).toEqual([true, true, true])
    await server.allClosed()
  })
})
