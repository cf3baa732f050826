import { Agent, request } from 'node:http'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { startHttp, type RunningHttp } from '../../src/node/start-http.ts'
import { createGate } from '../support/receiver.ts'

const agents: Agent[] = []
afterEach(() => {
  for (const agent of agents.splice(0)) agent.destroy()
})

interface Got {
  text: string
  connection: string | undefined
}

/** A client that keeps its one connection, and asks on it for as long as it is let. */
function createClient(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agents.push(agent)
  return (path: string): Promise<Got> =>
    new Promise((resolve, reject) => {
      const sent = request({ agent, port, path, host: '127.0.0.1' }, (response) => {
        let text = ''
        response.on('data', (chunk) => (text += String(chunk)))
        response.on('end', () => resolve({ text, connection: response.headers.connection }))
        response.on('error', reject)
      })
      sent.on('error', reject)
      sent.end()
    })
}

async function serve(): Promise<{
  http: RunningHttp
  gate: ReturnType<typeof createGate>
  asked: Promise<void>
}> {
  const gate = createGate()
  const arrived = createGate()
  const app = new Hono()
  app.get('/quick', (c) => c.text('quick'))
  app.get('/slow', async (c) => {
    arrived.open()
    await gate.opened
    return c.text('slow')
  })
  app.get('/stream', () => {
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode('begun, '))
        arrived.open()
        await gate.opened
        controller.enqueue(new TextEncoder().encode('done'))
        controller.close()
      },
    })
    return new Response(body)
  })
  const http = await startHttp(app, { port: 0, hostname: '127.0.0.1' })
  return { http, gate, asked: arrived.opened }
}

describe('a server that is stopped', () => {
  it('does not wait for connections that are kept open and idle', async () => {
    const { http } = await serve()
    const get = createClient(http.port)
    expect(await get('/quick')).toMatchObject({ text: 'quick', connection: 'keep-alive' })
    const since = Date.now()
    await http.stop({ withinMs: 60_000 })
    expect(Date.now() - since).toBeLessThan(10_000)
    await expect(get('/quick')).rejects.toThrow()
  })

  it.each(['/slow', '/stream'])(
    'lets what is under way (%s) end, and its connection with it',
    async (path) => {
      const { http, gate, asked } = await serve()
      const get = createClient(http.port)
      const slow = get(path)
      await asked
      const stopped = http.stop({ withinMs: 60_000 })
      // would go on asking on the same connection, for as long as it is kept
      const next = get('/quick').catch((error: unknown) => error)
      gate.open()
      const since = Date.now()
      expect(await slow).toMatchObject(
        path === '/slow' ? { text: 'slow', connection: 'close' } : { text: 'begun, done' },
      )
      await stopped
      expect(Date.now() - since).toBeLessThan(10_000)
      expect(await next).toBeInstanceOf(Error)
    },
  )

  it('cuts what does not end in time', async () => {
    const { http, asked } = await serve()
    const cut = createClient(http.port)('/slow').catch((error: unknown) => error)
    await asked
    await http.stop({ withinMs: 50 })
    expect(await cut).toBeInstanceOf(Error)
  })

  it('names the setting of a port that is taken', async () => {
    const { http } = await serve()
    const address = { port: http.port, hostname: '127.0.0.1', setting: 'MILLRACE_DOORBELL_PORT' }
    await expect(startHttp(new Hono(), address)).rejects.toMatchObject({
      code: 'INVALID_SETTING',
      message: expect.stringContaining('another with MILLRACE_DOORBELL_PORT=') as string,
    })
    await http.stop({ withinMs: 0 })
  })
})
