import { createServer, type AddressInfo, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createCancel } from '../../src/webhooks/cancel.ts'
import { createFetchSender } from '../../src/webhooks/fetch-sender.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import type { ResolvedAddress } from '../../src/webhooks/node-resolve.ts'
import type { Sender, SendRequest } from '../../src/webhooks/sender.ts'
import type { TargetPolicy } from '../../src/webhooks/target-url.ts'
import { startReceiver, type Handle } from './support/receiver.ts'

function deferred<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((done) => (resolve = done))
  return { promise, resolve: (value: Value) => resolve(value) }
}

type Create = (policy: TargetPolicy) => Sender
const senders: [string, Create][] = [
  ['Node', (policy) => createNodeSender({ policy })],
  ['fetch', (policy) => createFetchSender({ policy, fetch: (url, init) => fetch(url, init) })],
]

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()))
})

async function receiver(handle: Handle) {
  const started = await startReceiver(handle)
  open.push(() => started.close())
  return started
}

/** A server below HTTP, for answers that no HTTP server gives. */
async function rawServer(answer: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe.each(senders)('the %s sender', (_name, create) => {
  function sender(policy: TargetPolicy = { allowInsecure: true }) {
    const made = create(policy)
    open.push(() => made.close())
    return made
  }

  async function post(url: string, changes: Partial<SendRequest> = {}) {
    return sender().send({ url, headers: {}, body: '{}', timeoutMs: 5000, ...changes })
  }

  it('posts the exact bytes and headers, and gives the answer', async () => {
    const server = await receiver((_request, response) => {
      response.writeHead(503, { 'retry-after': '120' })
      response.end('later\n')
    })
    const headers = { 'content-type': 'application/json', 'webhook-id': 'msg_1' }
    const result = await post(`${server.origin}/hook?x=1`, { headers, body: '{"é":1.0}' })
    expect(result).toEqual({
      kind: 'answer',
      status: 503,
      retryAfter: '120',
      body: 'later\n',
      durationMs: expect.any(Number),
    })
    const [seen] = server.requests
    expect(seen).toMatchObject({ url: '/hook?x=1', body: '{"é":1.0}' })
    expect(seen?.headers).toMatchObject({
      ...headers,
      'accept-encoding': 'identity',
      'user-agent': 'Millrace',
    })
    expect(seen?.headers['content-length']).toBe('10')
  })

  it('sends bytes, and a user agent of the webhook’s own', async () => {
    const server = await receiver((_request, response) => response.end())
    const body = new TextEncoder().encode('{"n":1}')
    const result = await post(server.origin, { body, headers: { 'user-agent': 'shop/1' } })
    expect(result).toMatchObject({ status: 200, body: '', retryAfter: null })
    expect(server.requests[0]).toMatchObject({ body: '{"n":1}', headers: { 'user-agent': 'shop/1' } })
  })

  it('does not follow a redirect (W6)', async () => {
    const server = await receiver((_request, response) => {
      response.writeHead(307, { location: '/landed' })
      response.end()
    })
    expect(await post(`${server.origin}/from`)).toMatchObject({ kind: 'answer', status: 307 })
    expect(server.requests.map(({ url }) => url)).toEqual(['/from'])
  })

  it('refuses a URL that the guard forbids, before anything is sent (W6)', async () => {
    const server = await receiver((_request, response) => response.end())
    const strict = sender({})
    const urls = [server.origin, `https://127.0.0.1:${server.port}/`, `https://localhost:${server.port}/`]
    for (const url of urls) {
      const result = await strict.send({ url, headers: {}, body: '', timeoutMs: 1000 })
      expect(result).toMatchObject({ kind: 'error', reason: 'forbidden' })
    }
    expect(server.connections()).toBe(0)
  })

  it('reads 16 KiB of an endless answer, and ends the connection', async () => {
    let written = 0
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const server = await receiver((_request, response) => {
      const pump = () => {
        while (written < 1024 ** 3 && !response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) return response.once('drain', pump)
        }
        return response.end()
      }
      pump()
    })
    const result = await post(server.origin)
    expect(result).toMatchObject({ status: 200, body: 'x'.repeat(16 * 1024) })
    await server.allClosed()
    expect(written).toBeLessThan(64 * 1024 ** 2)
  })

  it('does not unpack a compressed answer into the log', async () => {
    const bomb = gzipSync(Buffer.alloc(32 * 1024 ** 2))
    const server = await receiver((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' })
      response.end(bomb)
    })
    const result = await post(server.origin)
    expect(result).toMatchObject({ status: 200, body: '(an answer with content-encoding gzip, not decoded)' })
  })

  it('keeps answers as clean text', async () => {
    const server = await receiver((_request, response) => {
      response.end(Buffer.from([0x61, 0, 0x62, 0xff, 0x0a, 0x09, 0x1b, 0x5b, 0x7f, 0xc2, 0x85, 0x0d, 0x63]))
    })
    expect(await post(server.origin)).toMatchObject({ body: 'ab\ufffd\n\t[c' })
  })

  it('keeps at most 16 KiB, also of invalid bytes, and cuts no character in half', async () => {
    const bodies = [Buffer.alloc(20_000, 0xff), Buffer.from(`a${'é'.repeat(10_000)}`)]
    const server = await receiver((_request, response) => response.end(bodies.shift()))
    for (const character of ['\ufffd', 'é']) {
      const result = await post(server.origin)
      const body = result.kind === 'answer' ? result.body : ''
      expect(Buffer.byteLength(body)).toBeLessThanOrEqual(16 * 1024)
      expect(Buffer.byteLength(body)).toBeGreaterThan(16 * 1024 - 4)
      expect(body.replace(/^a/, '')).toMatch(new RegExp(`^${character}+$`))
    }
  })

  it.each<[string, Handle]>([
    ['headers', () => {}],
    ['body', (_request, response) => void response.writeHead(200).write('start')],
    [
      'endless slow body',
      (_request, response) => {
        const timer = setInterval(() => response.write('.'), 10)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ])(
    'gives up at the deadline when the %s does not come, and frees the connection',
    async (_what, handle) => {
      const server = await receiver(handle)
      const result = await post(server.origin, { timeoutMs: 150 })
      expect(result).toMatchObject({
        kind: 'error',
        reason: 'timeout',
        message: 'no complete answer in 150 ms',
      })
      expect(result.durationMs).toBeGreaterThan(100)
      expect(result.durationMs).toBeLessThan(2000)
      await server.allClosed()
    },
  )

  it('calls a broken connection a reset, before and inside the body', async () => {
    const early = await receiver((request) => request.socket.resetAndDestroy())
    expect(await post(early.origin)).toMatchObject({ kind: 'error', reason: 'reset' })
    const late = await receiver((request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('start', () => request.socket.destroy())
    })
    expect(await post(late.origin)).toMatchObject({ kind: 'error', reason: 'reset' })
  })

  it('calls a closed port a failed connect', async () => {
    const server = await receiver((_request, response) => response.end())
    await server.close()
    const result = await post(server.origin)
    expect(result).toMatchObject({
      kind: 'error',
      reason: 'connect',
      message: expect.stringMatching(/ECONNREFUSED/),
    })
  })

  it('calls a failed handshake a failure of TLS', async () => {
    const server = await receiver((_request, response) => response.end())
    const result = await post(`https://127.0.0.1:${server.port}/`)
    expect(result).toMatchObject({ kind: 'error', reason: 'tls' })
  })

  it.each([
    ['what is not HTTP', 'hello there\r\n\r\n'],
    ['oversized headers', `HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(100_000)}\r\n\r\n`],
  ])('calls %s a failure of the protocol', async (_what, text) => {
    const url = await rawServer((socket) => socket.end(text))
    expect(await post(url)).toMatchObject({ kind: 'error', reason: 'protocol' })
  })

  it('ends an attempt that is cancelled, and begins none after', async () => {
    const cancel = createCancel()
    const server = await receiver(() => cancel.cancel())
    const result = await post(server.origin, { cancel })
    expect(result).toMatchObject({ kind: 'error', reason: 'aborted' })
    const second = await post(server.origin, { cancel })
    expect(second).toMatchObject({ kind: 'error', reason: 'aborted' })
    expect(server.requests).toHaveLength(1)
  })

  it('leaves nothing behind with what could have cancelled it', async () => {
    const cancel = createCancel()
    const [added, deleted] = [vi.spyOn(cancel, 'add'), vi.spyOn(cancel, 'delete')]
    const server = await receiver((_request, response) => void response.end())
    expect(await post(server.origin, { cancel })).toMatchObject({ kind: 'answer' })
    expect(added).toHaveBeenCalledOnce()
    expect(deleted.mock.calls).toEqual([[added.mock.results[0]?.value]])
  })

  it('ends what is in flight when it is closed, and sends nothing after', async () => {
    const made = sender()
    const server = await receiver(() => void made.close())
    const send = () => made.send({ url: server.origin, headers: {}, body: '', timeoutMs: 5000 })
    expect(await send()).toMatchObject({ kind: 'error', reason: 'aborted' })
    expect(await send()).toMatchObject({ kind: 'error', reason: 'aborted' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('the Node sender alone', () => {
  it('keeps the connection for the next attempt, and reads no proxy from the environment', async () => {
    const server = await receiver((_request, response) => response.end('ok'))
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'])
      vi.stubEnv(name, 'http://127.0.0.1:9')
    open.push(async () => void vi.unstubAllEnvs())
    const sender = createNodeSender({ policy: { allowInsecure: true } })
    open.push(() => sender.close())
    for (let attempt = 0; attempt < 10; attempt++) {
      const result = await sender.send({ url: server.origin, headers: {}, body: '', timeoutMs: 5000 })
      expect(result).toMatchObject({ status: 200, body: 'ok' })
    }
    expect(server.connections()).toBe(1)
  })

  it('opens as many connections as are needed at once, and another where one was closed', async () => {
    const last = new Set(['closed', 'broken'])
    const server = await receiver((request, response) => {
      const path = request.url?.slice(1) ?? ''
      if (path === 'broken') return void request.socket.resetAndDestroy()
      response.writeHead(200, last.has(path) ? { connection: 'close' } : {}).end()
    })
    const sender = createNodeSender({ policy: { allowInsecure: true } })
    open.push(() => sender.close())
    const send = (path = '') =>
      sender.send({ url: `${server.origin}/${path}`, headers: {}, body: '{}', timeoutMs: 5000 })
    const answered = expect.objectContaining({ kind: 'answer', status: 200 })
    for (let round = 0; round < 3; round++) {
      expect(await Promise.all(Array.from({ length: 4 }, () => send()))).toEqual(Array(4).fill(answered))
      expect(server.connections()).toBe(4)
    }
    expect(await send('closed')).toEqual(answered)
    expect(await send('broken')).toMatchObject({ kind: 'error', reason: 'reset' })
    for (let round = 0; round < 3; round++)
      expect(await Promise.all(Array.from({ length: 4 }, () => send()))).toEqual(Array(4).fill(answered))
    expect(server.connections()).toBeLessThanOrEqual(6)
  })

  it('lets no attempt wait behind one that was given up or does not end', async () => {
    const server = await receiver((request, response) => {
      if (request.url !== '/hang') response.end()
    })
    const sender = createNodeSender({ policy: { allowInsecure: true } })
    open.push(() => sender.close())
    const send = (path: string, timeoutMs: number) =>
      sender.send({ url: server.origin + path, headers: {}, body: '{}', timeoutMs })
    const hanging = send('/hang', 20_000)
    for (let n = 0; n < 3; n++) {
      expect(await send('/hang', 50)).toMatchObject({ kind: 'error', reason: 'timeout' })
      expect(await send('/', 10_000)).toMatchObject({ kind: 'answer', status: 200 })
    }
    await sender.close()
    expect(await hanging).toMatchObject({ kind: 'error', reason: 'aborted' })
  })

  it('says that a name does not resolve', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' })
    }
    const sender = createNodeSender({ policy: {}, resolve })
    open.push(() => sender.close())
    const result = await sender.send({
      url: 'https://gone.example.com/',
      headers: {},
      body: '',
      timeoutMs: 5000,
    })
    const message = 'gone.example.com cannot be resolved (ENOTFOUND)'
    expect(result).toMatchObject({ kind: 'error', reason: 'dns', message })
  })

  it('counts the name lookup into the deadline', async () => {
    const sender = createNodeSender({ policy: {}, resolve: () => new Promise(() => {}) })
    open.push(() => sender.close())
    const result = await sender.send({
      url: 'https://slow.example.com/',
      headers: {},
      body: '',
      timeoutMs: 100,
    })
    expect(result).toMatchObject({ kind: 'error', reason: 'timeout' })
  })
})

describe('the Node sender after its deadline', () => {
  it('sends nothing any more, however late the name resolves', async () => {
    const server = await receiver((_request, response) => response.end())
    const late = deferred<ResolvedAddress[]>()
    const sender = createNodeSender({ policy: { allowInsecure: true }, resolve: () => late.promise })
    open.push(() => sender.close())
    const url = `http://late.example.com:${server.port}/`
    const result = await sender.send({ url, headers: {}, body: 'first', timeoutMs: 50 })
    expect(result).toMatchObject({ kind: 'error', reason: 'timeout' })
    late.resolve([{ address: '127.0.0.1', family: 4 }])
    expect(await sender.send({ url, headers: {}, body: 'second', timeoutMs: 5000 })).toMatchObject({
      status: 200,
    })
    expect(server.requests.map(({ body }) => body)).toEqual(['second'])
  })
})

describe('the Node sender while a connection does not come about', () => {
  it('sends the next attempt on another one', async () => {
    const server = await receiver((_request, response) => response.end())
    const answers = [
      new Promise<ResolvedAddress[]>(() => {}),
      Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    ]
    const resolve = (): Promise<ResolvedAddress[]> => answers.shift() as Promise<ResolvedAddress[]>
    const sender = createNodeSender({ policy: { allowInsecure: true }, resolve })
    open.push(() => sender.close())
    const url = `http://stuck.example.com:${server.port}/`
    const send = (timeoutMs: number) => sender.send({ url, headers: {}, body: '', timeoutMs })
    expect(await send(50)).toMatchObject({ kind: 'error', reason: 'timeout' })
    expect(await send(5000)).toMatchObject({ kind: 'answer', status: 200 })
  })
})

describe('the fetch sender alone', () => {
  it('reads a hidden redirect as 302', async () => {
    const hidden = { type: 'opaqueredirect', status: 0, headers: new Headers(), body: null } as Response
    const sender = createFetchSender({ policy: {}, fetch: async () => hidden })
    const result = await sender.send({ url: 'https://example.com/', headers: {}, body: '', timeoutMs: 1000 })
    expect(result).toMatchObject({ kind: 'answer', status: 302 })
  })

  it('asks for manual redirects', async () => {
    let seen: RequestInit = {}
    const sender = createFetchSender({
      policy: {},
      fetch: async (_url, init) => {
        seen = init
        return new Response(null, { status: 204 })
      },
    })
    await sender.send({ url: 'https://example.com/', headers: {}, body: '', timeoutMs: 1000 })
    expect(seen).toMatchObject({ method: 'POST', redirect: 'manual' })
  })
})
