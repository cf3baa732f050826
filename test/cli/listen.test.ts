import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type Client } from '../../src/client/client.ts'
import type { CreatedWebhook } from '../../src/client/types.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createSigner } from '../../src/webhooks/sign.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { startReceiver } from '../support/receiver.ts'
import { envOf, start, type CommandOptions, type RunningCommand } from './support/run.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
let server: ApiServer
let client: Client

beforeAll(async () => {
  server = await startApiServer({ deliver: true })
  client = createClient({ url: server.url, key: server.rootKey })
})
afterAll(() => server.close())

/** Starts it on a free port and waits until it listens. */
async function listen(
  args: string[],
  options: CommandOptions = {},
): Promise<{ command: RunningCommand; url: string; end(): Promise<number> }> {
  const command = start(['listen', '--port', '0', ...args], { env: envOf(server), ...options })
  await command.until((_out, err) => err.includes('Ctrl-C ends.'))
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(command.err())?.[0] ?? ''
  const end = (): Promise<number> => {
    command.interrupt()
    return command.done
  }
  return { command, url, end }
}

async function post(url: string, body: string, key: string | null = secret): Promise<Response> {
  const timestamp = Math.floor(Date.now() / 1000)
  const signer = key === null ? null : await createSigner([key])
  const headers: Record<string, string> =
    signer === null
      ? {}
      : {
          'webhook-id': 'evt_1',
          'webhook-timestamp': String(timestamp),
          'webhook-signature': await signer.sign('evt_1', timestamp, body),
        }
  return fetch(url, { method: 'POST', body, headers })
}

describe('millrace listen', () => {
  it('verifies with the secret, prints the body token by token as it came, and answers 200', async () => {
    const { command, url, end } = await listen(['--secret', secret])
    const { status } = await post(url, '{"type":"a.b","data":{"n":12345678901234567890,"l":[],"s":"\\"}"}}')
    expect(status).toBe(200)
    expect(await end()).toBe(0)
    const [head, ...body] = command.out().split('\n')
    expect(head).toMatch(/^[\d:.]{12} {2}✓ verified {2}a\.b {2}evt_1 {2}→ 200$/)
    expect(body.join('\n')).toBe(`    {
      "type": "a.b",
      "data": {
        "n": 12345678901234567890,
        "l": [],
        "s": "\\"}"
      }
    }
`)
  })

  it('says what is not verified and why, and what cannot be', async () => {
    const verifying = await listen(['--secret', secret])
    await post(verifying.url, '{}', `whsec_${Buffer.alloc(32, 8).toString('base64')}`)
    await post(verifying.url, '{}', null)
    await verifying.end()
    expect(verifying.command.out()).toContain(
      '✗ not verified: no signature matches the secret and the body  (no type)',
    )
    expect(verifying.command.out()).toContain(
      '✗ not verified: webhook-id is missing  (no type)  (no webhook-id)',
    )
    const blind = await listen([])
    await post(blind.url, 'no \u001b[31m json')
    await blind.end()
    expect(blind.command.out()).toContain('? unverified')
    expect(blind.command.out()).toContain(String.raw`    no \u001b[31m json`)
  })

  it('answers with the statuses in turn, late and with Retry-After where it is told to', async () => {
    const { url, end } = await listen(['--answer', '200,500,503', '--retry-after', '7', '--delay', '40'])
    const answers: [number, string | null][] = []
    const startedAt = performance.now()
    for (let count = 0; count < 4; count++) {
      const { status, headers } = await post(url, '{}')
      answers.push([status, headers.get('retry-after')])
    }
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(4 * 39)
    await end()
    expect(answers).toEqual([
      [200, null],
      [500, '7'],
      [503, '7'],
      [200, null],
    ])
  })

  it('prints lines of JSON, and takes POST only', async () => {
    const { command, url, end } = await listen(['--secret', secret, '--json'])
    expect((await fetch(url)).status).toBe(405)
    await post(url, '{"type":"a",\n"data":1.0}')
    await end()
    const [line, rest] = command.out().split('\n')
    expect(rest).toBe('')
    expect(line).toMatch(/"body":{"type":"a", "data":1\.0}}$/)
    expect(JSON.parse(line!)).toMatchObject({ id: 'evt_1', type: 'a', verified: true, status: 200 })
  })

  it('W1: registers itself for a stream, gets what is published, verified, and removes itself', async () => {
    const { command, url, end } = await listen(['--stream', 'heard', '--types', 'b*'])
    const [webhook] = (await client.webhooks.list({ stream: 'heard' })).webhooks
    expect(webhook).toMatchObject({ url, types: ['b*'], state: 'active' })
    await publishEvents(server.db, 'heard', [
      { type: 'a', dataText: '1' },
      { type: 'b1', dataText: '2' },
    ])
    await command.until((out) => out.includes('"data": 2'))
    expect(await end()).toBe(0)
    expect(command.out()).toMatch(/✓ verified {2}b1/)
    expect(command.out()).not.toContain('"data": 1')
    expect(command.err()).toContain(`Removed webhook ${webhook?.id}.\n`)
    expect((await client.webhooks.list({ stream: 'heard' })).webhooks).toEqual([])
  })

  it('verifies from the first delivery on, also one that overtakes the answer to the registration', async () => {
    let answered: Promise<Response> | undefined
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const response = await globalThis.fetch(input, init)
      if (init?.method !== 'POST') return response
      const created = (await response.clone().json()) as CreatedWebhook
      answered = post(created.url, '{"type":"a"}', created.secret)
      // a receiver that did not wait for its secret would have answered by then
      await Promise.race([answered, delay(50)])
      return response
    }
    const { command, end } = await listen(['--stream', 'early'], { env: envOf(server), fetch })
    expect((await answered)?.status).toBe(200)
    await end()
    expect(command.out()).toContain('✓ verified')
    expect(command.out()).not.toContain('unverified')
  })

  it('says which webhook stays behind when the server is gone at the end', async () => {
    const other = await startApiServer()
    const { command, end } = await listen(['--stream', 's'], { env: envOf(other) })
    await other.stopHttp()
    expect(await end()).toBe(0)
    expect(command.err()).toMatch(
      /webhook (wh_\w+) is still registered: nothing answers .*; later: millrace webhooks delete \1\n$/,
    )
    await other.startHttp()
    await other.close()
  })
})

describe('the ways in which millrace listen does not start', () => {
  const refused = async (args: string[], env = envOf(server)): Promise<[number, string]> => {
    const command = start(['listen', ...args], { env })
    const code = await command.done
    return [code, command.err()]
  }

  it('a port that is taken', async () => {
    const taken = await startReceiver()
    const [code, err] = await refused(['--port', new URL(taken.url).port])
    expect(code).toBe(1)
    expect(err).toMatch(/^millrace: port \d+ is taken by another program: choose another with --port .*\n$/)
    await taken.close()
  })

  it('a wrong key, which leaves nothing listening', async () => {
    const [code, err] = await refused(['--port', '0', '-s', 's'], {
      MILLRACE_URL: server.url,
      MILLRACE_KEY: 'no',
    })
    expect([code, err]).toEqual([
      1,
      `millrace: the server at ${server.url} does not take the key from MILLRACE_KEY\n`,
    ])
  })

  it.each([
    [['--answer', '99'], 'It must be a whole number from 200 to 599.'],
    [['--secret', 'whsec_short'], 'It must'],
    [['--secret', 'whsk_AAAA'], 'verify with its whpk_ key'],
    [['--from', 'start'], '--from goes with --stream only'],
    [['--public-url', 'https://a'], '--public-url goes with --stream only'],
  ])('wrong usage: %j', async (args, problem) => {
    const [code, err] = await refused(args)
    expect(code).toBe(2)
    expect(err).toContain(problem)
  })

  it('a server elsewhere, which cannot reach this machine', async () => {
    const [code, err] = await refused(['-s', 's'], { MILLRACE_URL: 'https://millrace.example' })
    expect(code).toBe(2)
    expect(err).toContain('cannot reach 127.0.0.1: tell with --public-url')
  })
})
