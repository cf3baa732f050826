import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { envOf, run, type CommandResult } from './support/run.ts'

let server: ApiServer

beforeAll(async () => {
  server = await startApiServer()
})
afterAll(() => server.close())

const webhooks = (...args: string[]): Promise<CommandResult> =>
  run(['webhooks', ...args], { env: envOf(server) })

describe('millrace webhooks', () => {
  it('creates one with all that it is told, and shows its secret this once', async () => {
    const target = ['orders', 'https://example.com/hook']
    const filter = ['--types', 'a,b*', '--ordering', 'stream', '--from', 'start', '--format', 'cloudevents']
    const sending = [
      '--max-attempts',
      '3',
      '--timeout-ms',
      '2000',
      '--rate-limit',
      '5',
      '--header',
      'x-a=b=c',
    ]
    const created = await webhooks('create', ...target, ...filter, ...sending, '--signature', 'v1a')
    expect([created.code, created.err]).toEqual([0, ''])
    expect(created.out).toMatch(
      /^✓ created (wh_\w+): orders → https:\/\/example\.com\/hook\n {2}secret {6}whsk_\S+ \(shown this once\)\n {2}public key {2}whpk_\S+\n$/,
    )
    const id = /wh_\w+/.exec(created.out)![0]
    const shown = await webhooks('show', id, '--json')
    expect(JSON.parse(shown.out)).toMatchObject({
      types: ['a', 'b*'],
      ordering: 'stream',
      format: 'cloudevents',
      signature: 'v1a',
      maxAttempts: 3,
      timeoutMs: 2000,
      rateLimit: 5,
      headers: { 'x-a': 'b=c' },
    })
    const text = await webhooks('show', id)
    expect(text.out).toMatch(/^id {13}wh_\w+\nstream {9}orders\n/)
    expect(text.out + shown.out).not.toContain('whsk_')
  })

  it('lists all of them, over as many pages as there are, and deletes', async () => {
    for (let count = 0; count < 101; count++) {
      await webhooks('create', 'paged', `http://127.0.0.1:9/${count}`)
    }
    const listed = await webhooks('list', '--stream', 'paged', '--json')
    const ids = listed.out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: string }).id)
    expect(new Set(ids).size).toBe(101)
    expect(await webhooks('delete', ids[0]!)).toEqual({ code: 0, out: `✓ deleted ${ids[0]}\n`, err: '' })
    const [head, ...rows] = (await webhooks('list', '--stream', 'paged')).out.trim().split('\n')
    expect(head).toMatch(/^id +stream +state +lag +retrying +dead +url$/)
    expect(rows).toHaveLength(100)
    expect(rows[0]).toMatch(/^wh_\w{20} {2}paged {3}active {2}0 {4}0 {9}0 {5}http:\/\/127\.0\.0\.1:9\/\d+$/)
  })

  it('says on stderr that there are none', async () => {
    const { code, out, err } = await webhooks('list', '--stream', 'nothing')
    expect([code, out]).toEqual([0, ''])
    expect(err).toContain('There are no webhooks')
  })

  it("repeats the server's refusal in one line", async () => {
    expect(await webhooks('create', 'a', 'ftp://host')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^millrace: url .*\(TARGET_FORBIDDEN; .*\)\n$/),
    })
    expect(await webhooks('show', 'wh_none')).toMatchObject({
      code: 1,
      err: expect.stringContaining('(NOT_FOUND)'),
    })
    expect(await webhooks('create', 'a', 'https://a', '--ordering', 'any')).toMatchObject({
      code: 2,
      err: expect.stringContaining('It must be stream, key or none.'),
    })
  })

  it('prints its help on stderr and exits with 2 without a command of its own', async () => {
    const { code, out, err } = await webhooks()
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^Usage: millrace webhooks/)
  })
})
