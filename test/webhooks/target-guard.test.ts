import { createServer, type AddressInfo } from 'node:net'
import { Agent, request } from 'undici'
import { afterEach, describe, expect, it } from 'vitest'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import type { ResolveName } from '../../src/webhooks/node-resolve.ts'
import { createGuardedConnector, createGuardedLookup } from '../../src/webhooks/node-target-guard.ts'
import type { TargetPolicy } from '../../src/webhooks/target-url.ts'
import { startReceiver } from './support/receiver.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()))
})

async function receiver() {
  const started = await startReceiver((_request, response) => response.end('ok'))
  open.push(() => started.close())
  return started
}

function agentWith(policy: TargetPolicy, resolve?: ResolveName) {
  const connect = createGuardedConnector({ policy, resolve, connectTimeoutMs: 2000 })
  const agent = new Agent({ connect, pipelining: 0 })
  open.push(() => agent.destroy())
  return agent
}

/** Answers with the next addresses of a list each time it is asked. */
function answers(...rounds: string[][]): ResolveName {
  return async () =>
    (rounds.shift() ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
}

const forbidden = expect.objectContaining({ code: 'TARGET_FORBIDDEN' })

describe('the target guard at connect time (W6)', () => {
  it.each([
    [['127.0.0.1']],
    [['::1']],
    [['8.8.8.8', '10.0.0.1']],
    [['::ffff:127.0.0.1']],
    [['fe80::1%eth0']],
  ])('refuses a name that resolves to %j, and names no address', async (addresses) => {
    const lookup = createGuardedLookup({ policy: {}, resolve: answers(addresses) })
    const error = await new Promise((resolve) => lookup('hooks.example.com', { all: true }, resolve))
    expect(error).toEqual(forbidden)
    for (const address of addresses) expect(String(error)).not.toContain(address)
  })

  it('hands out public addresses, in both shapes and by family', async () => {
    const look = (options: object) => {
      const resolve = answers(['8.8.8.8', '2606:4700:4700::1111'])
      const lookup = createGuardedLookup({ policy: {}, resolve })
      return new Promise((done) => lookup('example.com', options, (...all) => done(all)))
    }
    const v4 = { address: '8.8.8.8', family: 4 }
    const v6 = { address: '2606:4700:4700::1111', family: 6 }
    expect(await look({ all: true })).toEqual([null, [v4, v6]])
    expect(await look({ all: true, family: 6 })).toEqual([null, [v6]])
    expect(await look({})).toEqual([null, v4.address, 4])
    expect(await look({ family: 'IPv6' })).toEqual([null, v6.address, 6])
  })

  it('fails where a name has no address', async () => {
    const lookup = createGuardedLookup({ policy: {}, resolve: answers([]) })
    const error = await new Promise((resolve) => lookup('example.com', { all: true }, resolve))
    expect(error).toMatchObject({ code: 'DNS_FAILED' })
  })

  it('connects to exactly the address it checked, and refuses a name that was rebound', async () => {
    const server = await receiver()
    // the policy opens one loopback address, so that a real connection can be made first
    const resolve = answers(['127.0.0.1'], ['127.0.0.1', '::1'], ['169.254.169.254'])
    const agent = agentWith({ allowedCidrs: ['127.0.0.1/32'] }, resolve)
    const get = () => request(`http://rebind.example.com:${server.port}/`, { dispatcher: agent })
    const first = await get()
    expect(await first.body.text()).toBe('ok')
    await expect(get()).rejects.toEqual(forbidden)
    await expect(get()).rejects.toEqual(forbidden)
    expect(server.connections()).toBe(1)
  })

  it('refuses an address in the URL itself, for which nothing is looked up', async () => {
    const server = await receiver()
    const agent = agentWith({})
    for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '[::1]']) {
      const asking = request(`http://${host}:${server.port}/`, { dispatcher: agent })
      await expect(asking).rejects.toEqual(forbidden)
    }
    expect(server.connections()).toBe(0)
  })

  it('lets no byte of the sender reach a name that resolves to the loopback', async () => {
    let connections = 0
    const server = createServer(() => connections++)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => new Promise((resolve) => server.close(resolve)))
    const sender = createNodeSender({ policy: {}, resolve: answers(['127.0.0.1']) })
    open.push(() => sender.close())
    const { port } = server.address() as AddressInfo
    const url = `https://hooks.example.com:${port}/`
    const result = await sender.send({ url, headers: {}, body: '{}', timeoutMs: 2000 })
    expect(result).toMatchObject({ kind: 'error', reason: 'forbidden' })
    expect(connections).toBe(0)
  })

  it('finds names of the hosts file where insecure targets are allowed', async () => {
    const server = await receiver()
    const agent = agentWith({ allowInsecure: true })
    const response = await request(`http://localhost:${server.port}/`, { dispatcher: agent })
    expect(await response.body.text()).toBe('ok')
  })
})
