import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { createServer } from 'node:https'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createHttp2Sender, preferHttp1 } from '../../src/webhooks/node-http2.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import type { SendRequest } from '../../src/webhooks/sender.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'
import { createAuthority, hasOpenssl, type Certificate } from './support/certificates.ts'
import { startRawHttp2, type RawStream } from './support/raw-http2.ts'
import { startHttp2Receiver, type HandleStream } from './support/http2-receiver.ts'

const address = '127.0.0.1'
const policy = { allowInsecure: true }
const delivered = { kind: 'answer', status: 200 }
const timedOut = { kind: 'error', reason: 'timeout' }
const patiently = { timeout: 20_000, interval: 20 }

describe.runIf(hasOpenssl)('sending over HTTP/2', () => {
  let certificate: Certificate
  const open: (() => Promise<unknown>)[] = []
  beforeAll(() => {
    const authority = createAuthority()
    certificate = authority.issue(address)
    authority.remove()
    // whom senders trust is shown in tls.test.ts
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  })
  afterAll(() => void vi.unstubAllEnvs())
  afterEach(async () => {
    for (const close of open.splice(0).toReversed()) await close()
  })

  async function receiver(
    handle?: HandleStream,
    options: { port?: number; maxConcurrentStreams?: number } = {},
  ) {
    const { maxConcurrentStreams, ...rest } = options
    const settings = maxConcurrentStreams === undefined ? {} : { maxConcurrentStreams }
    const started = await startHttp2Receiver({ ...certificate, ...rest, settings }, handle)
    open.push(() => started.close())
    return started
  }

  function sender() {
    const made = preferHttp1(createNodeSender({ policy }), createHttp2Sender({ policy }))
    open.push(() => made.close())
    return (url: string, changes: Partial<SendRequest> = {}) =>
      made.send({ url, headers: {}, body: '{}', timeoutMs: 20_000, ...changes })
  }

  async function raw(answer: (stream: RawStream) => void) {
    const started = await startRawHttp2(certificate, answer)
    open.push(() => started.close())
    return started
  }

  const ok: HandleStream = (stream) => {
    stream.respond({ ':status': 200 })
    stream.end('ok')
  }

  describe('a path that swallows everything', () => {
    async function throughProxy(handle?: HandleStream) {
      const server = await receiver(handle)
      const proxy = await createTcpProxy({ host: address, port: server.port })
      open.push(() => proxy.close())
      return { server, proxy, url: `https://${address}:${proxy.port}/` }
    }

    it('is given up with the first attempt that it times out, while others go on being sent', async () => {
      const { proxy, url } = await throughProxy()
      const send = sender()
      expect(await send(url)).toMatchObject(delivered)
      const before = proxy.accepted()
      proxy.silence()
      const waiting = send(url, { timeoutMs: 6_000 })
      expect(await send(url, { timeoutMs: 1_000 })).toMatchObject(timedOut)
      expect(await send(url)).toMatchObject(delivered)
      expect(await send(url)).toMatchObject(delivered)
      expect(proxy.accepted()).toBe(before + 1)
      expect(await waiting).toMatchObject(timedOut)
    })

    it('is left by those that come while the first still wait for their answers', async () => {
      const { proxy, url } = await throughProxy()
      const send = sender()
      expect(await send(url)).toMatchObject(delivered)
      proxy.silence()
      const results: unknown[] = []
      await vi.waitFor(
        () => {
          void send(url, { timeoutMs: 60_000 }).then((result) => results.push(result))
          expect(results.length).toBeGreaterThan(0)
        },
        { timeout: 20_000, interval: 200 },
      )
      expect(results).toMatchObject([delivered])
    })

    it('has its connections ended with the last attempt on them, though no peer answers', async () => {
      const { proxy, url } = await throughProxy()
      const send = sender()
      expect(await send(url)).toMatchObject(delivered)
      proxy.silence()
      await Promise.all([send(url, { timeoutMs: 500 }), send(url, { timeoutMs: 1_000 })])
      await vi.waitFor(() => expect(proxy.connections()).toBe(0), patiently)
    })

    it('costs a connection nothing where the receiver still answers others', async () => {
      const { proxy, url } = await throughProxy(
        (stream, path) => void (path === '/hangs' || ok(stream, path, 0)),
      )
      const send = sender()
      expect(await send(url)).toMatchObject(delivered)
      const before = proxy.accepted()
      const hanging = send(`${url}hangs`, { timeoutMs: 1_000 })
      expect(await send(url)).toMatchObject(delivered)
      expect(await hanging).toMatchObject(timedOut)
      expect(await send(url)).toMatchObject(delivered)
      expect(proxy.accepted()).toBe(before)
    })

    it('while a connection is opened is given up too', async () => {
      const { proxy, url } = await throughProxy()
      const send = sender()
      expect(await send(url)).toMatchObject(delivered)
      proxy.cut()
      proxy.blackhole()
      expect(await send(url, { timeoutMs: 1_000 })).toMatchObject({ kind: 'error' })
      expect(await send(url, { timeoutMs: 1_000 })).toMatchObject(timedOut)
      proxy.silence()
      expect(await send(url)).toMatchObject(delivered)
    })
  })

  describe('what the receiver speaks', () => {
    async function http1Receiver(port: number) {
      const versions: string[] = []
      const server = createServer(certificate, (request, response) => {
        versions.push(request.httpVersion)
        request.resume().on('end', () => response.end('ok'))
      })
      await new Promise<void>((resolve) => server.listen(port, address, resolve))
      const close = (): Promise<unknown> => {
        server.closeAllConnections()
        return new Promise((resolve) => server.close(resolve))
      }
      open.push(close)
      return { versions, close }
    }

    it('is asked at each connection: one that went over to HTTP/1.1, and back, loses no attempt', async () => {
      const send = sender()
      const first = await receiver()
      expect(await send(first.url)).toMatchObject(delivered)
      await first.close()
      const second = await http1Receiver(first.port)
      // by when this is through, the end of the connection has been read
      expect(await send((await receiver()).url)).toMatchObject(delivered)
      const all = await Promise.all(Array.from({ length: 5 }, () => send(first.url)))
      expect(all).toEqual(Array.from({ length: 5 }, () => expect.objectContaining(delivered)))
      expect(await send(first.url)).toMatchObject(delivered)
      expect(second.versions).toEqual(Array.from({ length: 6 }, () => '1.1'))
      await second.close()
      const third = await receiver(ok, { port: first.port })
      // what is left of its connections may break one attempt, as with any receiver that restarts
      await vi.waitFor(async () => expect(await send(first.url)).toMatchObject(delivered), patiently)
      expect(third.protocols.at(-1)).toBe('h2')
    })

    it('is remembered of a thousand receivers, the oldest forgotten first', async () => {
      const none = { kind: 'error', reason: 'alpn', message: '', durationMs: 1 } as const
      const answer = { kind: 'answer', status: 200, retryAfter: null, body: '', durationMs: 1 } as const
      const asked: string[] = []
      const close = async (): Promise<void> => {}
      const http1 = { close, send: async ({ url }: SendRequest) => (asked.push(url), none) }
      const either = preferHttp1(http1, { close, send: async () => answer })
      const send = (n: number) =>
        either.send({ url: `https://host${n}.test/`, headers: {}, body: '', timeoutMs: 1_000 })
      for (let n = 0; n <= 1_000; n++) expect(await send(n)).toMatchObject({ ...answer, durationMs: 2 })
      asked.length = 0
      for (const n of [1, 500, 1_000, 0]) await send(n)
      expect(asked).toEqual(['https://host0.test/'])
    })
  })

  describe('an answer that is cut', () => {
    const head = { ':status': 200 }
    const announced = { ...head, 'content-length': '1000' }
    const part = (stream: ServerHttp2Stream, headers: OutgoingHttpHeaders, then: () => void): void => {
      stream.respond(headers)
      stream.write('partial', then)
    }

    it.each<[string, HandleStream]>([
      ['with its connection', (stream) => part(stream, announced, () => stream.session?.destroy())],
      [
        'with its connection, of unknown length',
        (stream) => part(stream, head, () => stream.session?.destroy()),
      ],
      ['before its end was due', (stream) => part(stream, announced, () => stream.end())],
      ['by an error', (stream) => part(stream, announced, () => stream.destroy(new Error('cut')))],
      ['before its head', (stream) => void stream.session?.destroy()],
      ['by a reset without error', (stream) => stream.close(0)],
    ])('%s is no answer', async (_how, handle) => {
      const server = await receiver(handle)
      expect(await sender()(server.url)).toMatchObject({
        kind: 'error',
        reason: expect.stringMatching(/^(reset|protocol)$/),
      })
      expect(server.paths).toEqual(['/'])
    })

    it.each([0, 8, 2])('by a reset with code %i is no answer', async (code) => {
      const server = await raw((stream) => {
        stream.head(1000)
        stream.data('partial')
        stream.reset(code)
      })
      expect(await sender()(server.url)).toMatchObject({ kind: 'error' })
    })

    it('by the bare end of its connection is no answer', async () => {
      const server = await raw((stream) => {
        stream.head()
        stream.data('partial')
        stream.cut()
      })
      expect(await sender()(server.url)).toMatchObject({ kind: 'error', reason: 'reset' })
    })

    it('is one where the reset comes after its end', async () => {
      const server = await raw((stream) => {
        stream.head(7)
        stream.data('partial', true)
        stream.reset(0)
      })
      expect(await sender()(server.url)).toMatchObject({ ...delivered, body: 'partial' })
    })

    it('is one where this side has read enough of it, or where there is nothing to read', async () => {
      const bytes = Buffer.alloc(64 * 1024, 'x')
      const server = await receiver((stream, path) => {
        if (path === '/204') return stream.respond({ ':status': 204 }, { endStream: true })
        if (path === '/head') return stream.respond(head, { endStream: true })
        if (path === '/empty') return void (stream.respond(head), stream.end())
        if (path === '/exact')
          return void (stream.respond({ ...head, 'content-length': '7' }), stream.end('partial'))
        stream.respond({ ...head, 'content-length': String(100 * bytes.length) })
        const pump = (): void => {
          while (!stream.destroyed && stream.write(bytes)) continue
        }
        stream.on('drain', pump)
        return pump()
      })
      const send = sender()
      const answers = []
      for (const path of ['endless', '204', 'head', 'empty', 'exact'])
        answers.push(await send(server.url + path))
      expect(answers).toMatchObject([
        { ...delivered, body: 'x'.repeat(16 * 1024) },
        { kind: 'answer', status: 204, body: '' },
        { ...delivered, body: '' },
        { ...delivered, body: '' },
        { ...delivered, body: 'partial' },
      ])
      // breaking one off leaves the connection as it was
      expect(server.protocols).toEqual(['h2'])
    })
  })

  describe('a request that the receiver has not looked at', () => {
    const refused = 7
    const answerIt = (stream: RawStream): void => stream.head(0, true)

    it.each([0, 11])(
      'since it goes away (code %i) goes out again at once, on another connection',
      async (code) => {
        const server = await raw((stream) => {
          if (stream.id === 1) answerIt(stream)
          else stream.goAway(code, 1)
        })
        const send = sender()
        expect(await send(server.url)).toMatchObject(delivered)
        const both = await Promise.all([send(server.url), send(server.url)])
        // on the second connection the first of the two is answered, the other one goes on to a third
        expect(both).toMatchObject([delivered, delivered])
        expect(server.connections()).toBe(3)
      },
    )

    it('since it refuses it goes out again at once, on another connection', async () => {
      const server = await raw((stream) =>
        stream.connection === 1 ? stream.reset(refused) : answerIt(stream),
      )
      const send = sender()
      expect(await send(server.url)).toMatchObject(delivered)
      expect(await send(server.url)).toMatchObject(delivered)
      expect(server.connections()).toBe(2)
    })

    it('is left to the schedule where it refuses again and again', async () => {
      const server = await raw((stream) => stream.reset(refused))
      expect(await sender()(server.url)).toMatchObject({ kind: 'error', reason: 'reset' })
      expect(server.connections()).toBe(3)
    })
  })

  describe('connections', () => {
    const url = (origin: { url: string }, n: number): string => `${origin.url}${n}`
    const many = (count: number) => Array.from({ length: count }, (_, n) => n)

    it('are as many as the peer needs for what it takes at once on each', async () => {
      const held: (() => void)[] = []
      const server = await receiver((stream, path) => void held.push(() => ok(stream, path, 0)), {
        maxConcurrentStreams: 2,
      })
      const send = sender()
      const sent = Promise.all(many(5).map((n) => send(url(server, n))))
      await vi.waitFor(() => expect(held).toHaveLength(5), patiently)
      expect(server.protocols).toHaveLength(3)
      for (const go of held) go()
      expect(await sent).toMatchObject(many(5).map(() => delivered))
    })

    it('are more once the peer takes fewer at once', async () => {
      const held: (() => void)[] = []
      const server = await receiver((stream, path) => {
        if (path !== '/first') return void held.push(() => ok(stream, path, 0))
        stream.session?.settings({ maxConcurrentStreams: 1 }, () => ok(stream, path, 0))
      })
      const send = sender()
      expect(await send(`${server.url}first`)).toMatchObject(delivered)
      const sent = Promise.all(many(2).map((n) => send(url(server, n))))
      await vi.waitFor(() => expect(held).toHaveLength(2), patiently)
      expect(server.protocols).toHaveLength(2)
      for (const go of held) go()
      expect(await sent).toMatchObject(many(2).map(() => delivered))
    })

    it('are ten to an origin at most', async () => {
      const server = await receiver(undefined, { maxConcurrentStreams: 1 })
      const send = sender()
      const sent = await Promise.all(many(40).map((n) => send(url(server, n))))
      expect(sent).toMatchObject(many(40).map(() => delivered))
      expect(server.paths).toHaveLength(40)
      expect(server.protocols.length).toBeLessThanOrEqual(10)
    })

    it('end when they are idle, whatever the number of origins, and when the sender is closed', async () => {
      const servers = await Promise.all(many(4).map(() => receiver()))
      const send = sender()
      await Promise.all(servers.map((server) => send(server.url)))
      expect(servers.map((server) => server.open())).toEqual([1, 1, 1, 1])
      await vi.waitFor(() => expect(servers.map((server) => server.open())).toEqual([0, 0, 0, 0]), patiently)
      const http2 = createHttp2Sender({ policy })
      const request = { url: servers[0]!.url, headers: {}, body: '', timeoutMs: 20_000 }
      expect(await http2.send(request)).toMatchObject(delivered)
      await http2.close()
      await vi.waitFor(() => expect(servers[0]!.open()).toBe(0), patiently)
      expect(await http2.send(request)).toMatchObject({ kind: 'error', reason: 'aborted' })
    })

    it('are made to public addresses alone (W6)', async () => {
      const server = await receiver()
      const http2 = createHttp2Sender({ policy: {}, resolve: async () => [{ address, family: 4 }] })
      open.push(() => http2.close())
      const there = server.url.replace(address, 'hooks.example.com')
      for (const target of [server.url, there]) {
        const result = await http2.send({ url: target, headers: {}, body: '', timeoutMs: 20_000 })
        expect(result).toMatchObject({ kind: 'error', reason: 'forbidden' })
      }
      expect(server.protocols).toEqual([])
    })
  })
})
