import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createHttp2Sender, preferHttp1 } from '../../src/webhooks/node-http2.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import type { SendRequest } from '../../src/webhooks/sender.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'
import { createAuthority, hasOpenssl, type Certificate } from './support/certificates.ts'
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
})
