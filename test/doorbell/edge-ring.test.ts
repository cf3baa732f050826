import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDoorbell } from '../../src/doorbell/answer-ring.ts'
import type { Ring } from '../../src/doorbell/ring.ts'
import { createEdge, type Edge } from '../../src/edge/create-edge.ts'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { createSystemPorts, systemClock } from '../../src/system-ports.ts'
import { createWorld, type World } from '../delivery/support/world.ts'
import { startGateway } from '../support/gateway.ts'
import { createGate } from '../support/receiver.ts'

const secret = 'a-secret-of-both-ends-0123456789'
const rootKey = 'Root-key-0123456789'
const doorbellUrl = 'https://forwarder.example/doorbell'

describe('an edge app with a doorbell', () => {
  let world: World
  let gateway: NeonGateway
  let edge: Edge
  let heard: Ring['streamIds'][]
  let onRing: (request: Request) => Promise<Response>
  let after: Promise<unknown>[]
  let env: Record<string, string>
  beforeEach(async () => {
    world = await createWorld()
    gateway = await startGateway(world.url)
    heard = []
    after = []
    const bell = createDoorbell({
      secret,
      clock: systemClock,
      mode: () => 'sleeping',
      onRing: (streamIds) => void heard.push(streamIds),
    })
    onRing = (request) => bell.answer(request)
    const real = createSystemPorts()
    const fetch: typeof globalThis.fetch = (input, init) =>
      input === doorbellUrl ? onRing(new Request(input, init)) : real.fetch(input, init)
    edge = createEdge({ ...real, fetch })
    env = {
      DATABASE_URL: world.url,
      MILLRACE_NEON_GATEWAY: `${gateway.host}:${gateway.port}`,
      MILLRACE_ROOT_KEY: rootKey,
      MILLRACE_ALLOW_INSECURE_TARGETS: '1',
      MILLRACE_DOORBELL_SECRET: secret,
      MILLRACE_DOORBELL_URL: 'https://forwarder.example',
    }
  })
  afterEach(async () => {
    await Promise.all(after)
    await gateway.close()
    await world.close()
  })

  function call(method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }
    const request = new Request(`http://edge${path}`, { method, headers, body: JSON.stringify(body) })
    return edge.fetch(request, env, { waitUntil: (promise) => void after.push(promise) })
  }

  const publish = (data: unknown): Promise<Response> =>
    call('POST', '/v1/streams/orders/events', { type: 'made', data })

  it('rings after the commit and beside the answer, and leaves the delivery to who hears it', async () => {
    await world.webhook()
    const gate = createGate()
    const committed: unknown[] = []
    const answer = onRing
    onRing = async (request) => {
      const [row] = await world.sql('select count(*)::integer as n from millrace.events')
      committed.push(row)
      await gate.opened
      return answer(request)
    }
    expect((await publish(1)).status).toBe(201)
    expect(heard).toEqual([])
    gate.open()
    await Promise.all(after)
    expect(committed).toEqual([{ n: 1 }])
    const [stream] = await world.sql<{ id: number }>(
      `select id::integer as id from millrace.streams where name = 'orders'`,
    )
    expect(heard).toEqual([[stream!.id]])
    expect(world.receiver.requests).toEqual([])
  })

  it.each([
    ['breaks', () => Promise.reject(new Error('no route'))],
    ['refuses', async () => new Response('', { status: 401 })],
  ])('delivers by itself when the doorbell %s', async (_what, answer) => {
    await world.webhook()
    onRing = answer
    expect((await publish(1)).status).toBe(201)
    await Promise.all(after)
    expect(world.receiver.requests).toHaveLength(1)
  })

  it('rings for changes of webhooks, not for reads, refusals and what is not served', async () => {
    const target = { kind: 'stream', name: 'orders' }
    const webhook = { stream: 'orders', url: `${world.receiver.url}/` }
    expect((await call('POST', '/v1/webhooks', webhook)).status).toBe(201)
    await Promise.all(after)
    expect(heard).toEqual(['all'])
    expect((await call('GET', '/v1/webhooks')).status).toBe(200)
    expect((await call('POST', '/v1/webhooks', { stream: 'orders' })).status).toBe(400)
    await call('PUT', '/v1/schedules/tick', { target, everyMs: 1_000, data: 1 })
    await call('POST', '/v1/queues/jobs/messages', { data: 1 })
    await Promise.all(after)
    expect(heard).toEqual(['all'])
  })
})
