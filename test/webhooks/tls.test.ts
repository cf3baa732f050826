import { execFile } from 'node:child_process'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createWorld } from '../delivery/support/world.ts'
import { createHttp2Sender } from '../../src/webhooks/node-http2.ts'
import { createNodeSender } from '../../src/webhooks/node-sender.ts'
import type { SendResult } from '../../src/webhooks/sender.ts'
import { createAuthority, hasOpenssl, type Certificate, type TestAuthority } from './support/certificates.ts'

const address = '127.0.0.1'
const answer = (status: number) => expect.objectContaining({ kind: 'answer', status })

if (!hasOpenssl) process.stdout.write('TLS: there is no openssl here to make certificates with: left out\n')

describe.runIf(hasOpenssl)('sending over TLS', () => {
  let authority: TestAuthority
  const open: (() => Promise<unknown>)[] = []
  beforeAll(() => void (authority = createAuthority()))
  afterAll(() => authority.remove())
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
  })

  type Handle = (request: Http2ServerRequest, response: Http2ServerResponse) => void

  /** An https receiver; it says in its answer which version it was spoken to in. */
  async function receiver(certificate: Certificate, http1: boolean, handle?: Handle) {
    const sockets = new Set<Socket>()
    const versions: string[] = []
    let sessions = 0
    const server = createSecureServer({ ...certificate, allowHTTP1: http1 }, (request, response) => {
      request.resume()
      versions.push(request.httpVersion)
      if (handle !== undefined) return handle(request, response)
      request.on('end', () => void response.end(request.httpVersion))
    })
    server.on('session', (session) => {
      sessions++
      session.on('error', () => {})
    })
    server.on('secureConnection', (socket) => void sockets.add(socket))
    server.on('tlsClientError', () => {})
    await new Promise<void>((resolve) => server.listen(0, address, resolve))
    open.push(async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    })
    const url = `https://${address}:${(server.address() as AddressInfo).port}/`
    return { url, versions, sessions: () => sessions }
  }

  /** Sends from a process that trusts the authority. */
  async function sendTrusting(
    urls: string[],
    { together = false, timeoutMs = 20_000 } = {},
  ): Promise<SendResult[]> {
    const work = JSON.stringify({ urls, together, timeoutMs })
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', 'test/webhooks/support/send-in-process.ts', work],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: authority.path }, timeout: 60_000 },
    )
    return JSON.parse(stdout) as SendResult[]
  }

  it('refuses a certificate that nobody known has signed, and sends nothing', async () => {
    const policy = { allowInsecure: true }
    const senders = [createNodeSender({ policy }), createHttp2Sender({ policy })]
    for (const sender of senders) open.push(() => sender.close())
    for (const [n, sender] of [...senders, ...senders].entries()) {
      const certificate = n < 2 ? authority.selfSigned(address) : authority.issue(address)
      const { url, versions } = await receiver(certificate, true)
      const result = await sender.send({ url, headers: {}, body: '{}', timeoutMs: 20_000 })
      expect(result).toMatchObject({
        kind: 'error',
        reason: 'tls',
        message: expect.stringMatching(/certificate/),
      })
      expect(versions).toEqual([])
    }
  })

  it('takes one of an authority in NODE_EXTRA_CA_CERTS, but not for another host', async () => {
    const good = await receiver(authority.issue(address), true)
    const other = await receiver(authority.issue('127.0.0.9'), true)
    const own = await receiver(authority.selfSigned(address), true)
    const results = await sendTrusting([good.url, other.url, own.url])
    const refused = { kind: 'error', reason: 'tls' }
    expect(results).toMatchObject([{ kind: 'answer', status: 200 }, refused, refused])
    expect([good.versions, other.versions, own.versions]).toEqual([['1.1'], [], []])
  })

  it('tells in the attempt log why, and tries again', async () => {
    const world = await createWorld()
    open.push(() => world.close())
    const { url } = await receiver(authority.selfSigned(address), true)
    await world.webhook({ url, scheduleMs: [0, 60_000] })
    world.start()
    await world.publish(['k'])
    const attempts = 'select outcome, error, status from millrace.attempts'
    const [line] = await world.until<object>(attempts, (rows) => rows.length > 0)
    expect(line).toEqual({
      outcome: 'retry',
      status: null,
      error: expect.stringMatching(/^tls: .*certificate/),
    })
  })

  it('speaks HTTP/1.1 where the receiver does, and HTTP/2 to one that speaks nothing else', async () => {
    const both = await receiver(authority.issue(address), true)
    const only = await receiver(authority.issue(address), false)
    const results = await sendTrusting([both.url, only.url, both.url, only.url])
    expect(results.map((result) => result.kind === 'answer' && result.body)).toEqual([
      '1.1',
      '2.0',
      '1.1',
      '2.0',
    ])
    expect([both.versions.length, only.versions.length]).toEqual([2, 2])
  })

  it('sends many at once over one HTTP/2 connection; one that hangs or is reset fails alone', async () => {
    const only = await receiver(authority.issue(address), false, (request, response) => {
      if (request.url === '/hangs') return
      if (request.url === '/reset') return void response.stream.close(2)
      request.on('end', () => void response.end('ok'))
    })
    // the first learns that only HTTP/2 is spoken here; at once, so do all that begin meanwhile
    const urls = Array.from({ length: 60 }, (_, n) => (n === 7 ? 'hangs' : n === 11 ? 'reset' : `${n}`))
    const results = await sendTrusting(
      urls.map((path) => only.url + path),
      { together: true, timeoutMs: 8_000 },
    )
    const failed = results.flatMap((result, n) => (result.kind === 'error' ? [[n, result.reason]] : []))
    expect(failed).toEqual([
      [7, 'timeout'],
      [11, expect.any(String)],
    ])
    expect(results.filter((result) => result.kind === 'answer')).toEqual(
      Array.from({ length: 58 }, () => answer(200)),
    )
    expect(only.sessions()).toBe(1)
  })
})
