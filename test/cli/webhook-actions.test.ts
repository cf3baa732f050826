import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type Client } from '../../src/client/client.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { envOf, run, type CommandResult } from './support/run.ts'

let server: ApiServer
let receiver: Receiver
let client: Client

beforeAll(async () => {
  server = await startApiServer({ deliver: true })
  receiver = await startReceiver()
  client = createClient({ url: server.url, key: server.rootKey })
})
afterAll(async () => {
  await server.close()
  await receiver.close()
})

const webhooks = (...args: string[]): Promise<CommandResult> =>
  run(['webhooks', ...args], { env: envOf(server) })

/** A webhook of which events of the type `bad` die at once, and one such event. */
async function withDeadLetter(stream: string): Promise<{ id: string; offset: number }> {
  receiver.answer(({ body }) => (body.includes('"bad"') ? { status: 400, body: 'no\u001b[2J' } : {}))
  const { id } = await client.webhooks.create({ stream, url: receiver.url, from: 'start', maxAttempts: 1 })
  const { offset } = await client.stream(stream).publish({ type: 'bad', key: 'k', data: 1 })
  await until(async () => (await client.webhooks.get(id)).dead === 1)
  return { id, offset }
}

async function until(met: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000
  while (!(await met())) {
    if (Date.now() > end) throw new Error('not within 20 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe('millrace webhooks', () => {
  it('pauses and resumes, and says where', async () => {
    const { id, offset } = await client.webhooks.create({ stream: 'paused', url: receiver.url })
    expect(await webhooks('pause', id)).toEqual({
      code: 0,
      out: `✓ ${id} is paused, at offset ${offset}\n`,
      err: '',
    })
    expect((await webhooks('resume', id)).out).toBe(
      `✓ ${id} goes on at offset ${offset}, with 0 events waiting\n`,
    )
  })

  it('sends a test event, and fails when the answer is no success', async () => {
    const { id } = await client.webhooks.create({ stream: 'tested', url: receiver.url })
    receiver.answerNext({ body: 'thanks' }, { status: 500, body: 'a\nb\u0007' })
    expect(await webhooks('test', id)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^✓ delivered: answered 200, in \d+ ms\nthanks\n$/),
    })
    expect(await webhooks('test', id)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^✗ not delivered: answered 500, in \d+ ms\na\nb\n$/),
    })
    receiver.answerNext({ reset: true })
    const { code, out } = await webhooks('test', id, '--json')
    expect([code, JSON.parse(out)]).toEqual([
      1,
      { delivered: false, error: expect.stringMatching(/^reset: /), durationMs: expect.any(Number) },
    ])
  })

  it('rotates the secret, which it prints this once', async () => {
    const { id } = await client.webhooks.create({ stream: 'rotated', url: receiver.url, signature: 'v1a' })
    const { code, out } = await webhooks('rotate-secret', id, '--overlap-hours', '168')
    expect(code).toBe(0)
    expect(out).toMatch(
      /^✓ wh_\w+ has a new secret; the old one signs too until 2\S+Z\n {2}secret {6}whsk_\S+ \(shown this once\)\n {2}public key {2}whpk_\S+\n$/,
    )
    const until = Date.parse(/until (\S+)/.exec(out)![1]!)
    expect(Math.round((until - Date.now()) / 3_600_000)).toBe(168)
    expect(await webhooks('rotate-secret', id, '--overlap-hours', '169')).toMatchObject({ code: 2 })
  })

  it('lists what is in trouble and what was tried, safe for a terminal', async () => {
    const { id, offset } = await withDeadLetter('listed')
    const listed = await webhooks('deliveries', id, '--state', 'dead')
    const [head, row, ...others] = listed.out.trim().split('\n')
    expect(head).toMatch(/^offset +state +type +key +attempts +due +last error$/)
    expect([row, others]).toEqual([
      expect.stringMatching(new RegExp(`^${offset} +dead +bad +k +1 +– +answered 400$`)),
      [],
    ])
    expect((await webhooks('deliveries', id, '--state', 'blocked')).err).toBe('Nothing is in trouble.\n')
    const attempts = await webhooks('attempts', id, '--offset', String(offset))
    expect(attempts.out).toMatch(new RegExp(`\n\\S+Z +${offset} +1 +dead +400 +\\d+ +answered 400\n$`))
    expect((await webhooks('attempts', id, '--outcome', 'delivered')).err).toBe('No attempts are logged.\n')
    const json = JSON.parse((await webhooks('attempts', id, '--json')).out) as object
    expect(json).toMatchObject({ offset, outcome: 'dead', status: 400 })
    expect(listed.out + attempts.out).not.toContain('\u001b[2J')
  })

  it('lists no more than it is asked for, over as many pages as that takes, and says that there are more', async () => {
    receiver.answer({ status: 400 })
    const { id } = await client.webhooks.create({
      stream: 'many',
      url: receiver.url,
      from: 'start',
      maxAttempts: 1,
    })
    await client.stream('many').publishMany(Array.from({ length: 130 }, () => ({ type: 'bad', data: 1 })))
    await until(async () => (await client.webhooks.get(id)).dead === 130)
    const all = await webhooks('deliveries', id, '--limit', '200', '--json')
    expect([all.out.trim().split('\n').length, all.err]).toEqual([130, ''])
    const some = await webhooks('deliveries', id, '--limit', '101', '--json')
    expect(some.out.trim().split('\n')).toHaveLength(101)
    expect(some.err).toContain('There are more')
  })

  it('retries, redrives and moves', async () => {
    const { id, offset } = await withDeadLetter('revived')
    receiver.answer({})
    const since = '2999-01-01T00:00:00Z'
    expect((await webhooks('redrive', id, '--since', since)).out).toBe('✓ 0 dead letters are sent again\n')
    expect((await webhooks('retry', id, String(offset))).out).toBe(`✓ offset ${offset} is due now\n`)
    await until(async () => (await client.webhooks.get(id)).dead === 0)
    expect((await webhooks('redrive', id)).out).toBe('✓ 0 dead letters are sent again\n')
    const sentBefore = receiver.requests.length
    expect((await webhooks('seek', id, 'start')).out).toBe(`✓ ${id} goes on after offset 0\n`)
    await receiver.waitFor(sentBefore + 1, 20_000)
    expect((await webhooks('seek', id, since)).out).toMatch(
      new RegExp(`^✓ ${id} goes on after offset \\d+\n$`),
    )
    expect((await webhooks('seek', id, String(offset))).code).toBe(0)
  })

  it('refuses what makes no sense, by name', async () => {
    const { id } = await client.webhooks.create({ stream: 'refused', url: receiver.url })
    expect(await webhooks('seek', id, 'yesterday')).toMatchObject({
      code: 2,
      err: expect.stringContaining('It must be a time such as'),
    })
    expect(await webhooks('retry', id, '5')).toMatchObject({
      code: 1,
      err: expect.stringContaining('NOT_FOUND'),
    })
    expect(await webhooks('seek', id, '9007199254740991')).toMatchObject({
      code: 1,
      err: expect.stringContaining('OFFSET_AHEAD'),
    })
    for (const action of ['pause', 'resume', 'test', 'rotate-secret', 'redrive', 'deliveries', 'attempts'])
      expect(await webhooks(action, 'wh_none')).toMatchObject({
        code: 1,
        err: expect.stringContaining('NOT_FOUND'),
      })
  })
})
