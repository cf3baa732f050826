import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { envOf, run, type CommandOptions, type CommandResult } from './support/run.ts'

let server: ApiServer

beforeAll(async () => {
  server = await startApiServer()
})
afterAll(() => server.close())

const cli = (args: string[], options: CommandOptions = {}): Promise<CommandResult> =>
  run(args, { env: envOf(server), ...options })

/** Runs a command that must succeed, and returns its JSON. */
async function json<T>(...args: string[]): Promise<T> {
  const { code, out, err } = await cli([...args, '--json'])
  expect({ args, code, err }).toEqual({ args, code: 0, err: '' })
  return JSON.parse(out) as T
}

interface Claimed {
  id: number
  lease: string
  dataText: string
}

const claim = (queue: string): Promise<Claimed> => json('queues', 'claim', queue)
const held = ({ id, lease }: Claimed): string[] => [String(id), lease]

describe('millrace queues', () => {
  it('sends, claims and acks, with the data byte for byte', async () => {
    const sent = await cli([
      'queues',
      'send',
      'mails',
      '{"n": 1.0}',
      '--type',
      'welcome',
      '--key',
      'k',
      '--header',
      'a=b',
    ])
    expect(sent).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^✓ sent to mails as \d+\n$/) as string,
    })
    const shown = await cli(['queues', 'show', 'mails'])
    expect(shown.out).toMatch(/^ready +1$/m)
    const message = await claim('mails')
    expect(message).toMatchObject({
      dataText: '{"n": 1.0}',
      type: 'welcome',
      key: 'k',
      headers: { a: 'b' },
      attempt: 1,
    })
    expect(await cli(['queues', 'ack', 'mails', ...held(message)])).toEqual({
      code: 0,
      out: `✓ ack ${message.id}\n`,
      err: '',
    })
    const again = await cli(['queues', 'ack', 'mails', ...held(message)])
    expect(again).toMatchObject({ code: 1, out: '', err: expect.stringContaining('was lost') as string })
    expect(await cli(['queues', 'claim', 'mails'])).toEqual({
      code: 0,
      out: '',
      err: 'There is nothing to claim.\n',
    })
  })

  it('sends with all that a message can say, and keeps finished ones for as long as it is told', async () => {
    const options =
      '--priority -3 --max-attempts 4 --lease-ms 5000 --at 2020-01-31T09:00:00Z --dedupe-key once'
    const more = '--dedupe-window-ms 60000 --backoff-base-ms 0 --backoff-factor 1.5 --backoff-max-ms 9'
    const sent = await json<{ id: number }>('queues', 'send', 'told', '1', ...`${options} ${more}`.split(' '))
    expect(await json('queues', 'send', 'told', '2', '--dedupe-key', 'once')).toEqual({
      id: sent.id,
      duplicate: true,
    })
    const stored = await runQuery<Record<string, unknown>>(
      server.db,
      sql`select m.priority::integer, m.max_attempts, m.lease_ms, m.backoff_base_ms::integer as base,
          m.backoff_factor::real as factor, m.backoff_max_ms::integer as most,
          extract(epoch from k.expires_at - m.sent_at)::integer as window
        from millrace.messages m join millrace.dedupe_keys k on k.message_id = m.id where m.id = ${sent.id}`,
    )
    expect(stored).toEqual([
      { priority: -3, max_attempts: 4, lease_ms: 5000, base: 0, factor: 1.5, most: 9, window: 60 },
    ])
    const wrong = await cli(['queues', 'send', 'told', '1', '--priority', '-32769'])
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('-32768 to 32767') as string })
    const when = await cli(['queues', 'send', 'told', '1', '--at', 'tomorrow'])
    expect(when).toMatchObject({ code: 1, err: expect.stringContaining('at') as string })

    const configure = (value: string) => cli(['queues', 'configure', 'told', '--retain-finished-ms', value])
    expect(await configure('60000')).toMatchObject({
      code: 0,
      out: '✓ told keeps for 60000 ms its finished messages\n',
    })
    expect(await json('queues', 'show', 'told')).toMatchObject({ retainFinishedMs: 60_000 })
    expect(await configure('none')).toMatchObject({ code: 0, out: '✓ told keeps no finished messages\n' })
    expect(await json('queues', 'show', 'told')).toMatchObject({ retainFinishedMs: null })
    expect(await configure('0')).toMatchObject({ code: 2 })
  })

  it('waits for a message for as long as it is told', async () => {
    const waiting = json<Claimed>('queues', 'claim', 'later', '--wait-ms', '30000')
    await json('queues', 'send', 'later', '"here"')
    expect(await waiting).toMatchObject({ dataText: '"here"' })
    const nothing = await cli(['queues', 'claim', 'later', '--wait-ms', '50'])
    expect(nothing).toEqual({ code: 0, out: '', err: 'There is nothing to claim.\n' })
    const tooLong = await cli(['queues', 'claim', 'later', '--wait-ms', '30001'])
    expect(tooLong).toMatchObject({ code: 2, err: expect.stringContaining('0 to 30000') as string })
  })

  it('retries, returns, extends and fails; dead letters are listed, sent again and deleted', async () => {
    for (const n of [1, 2]) await json('queues', 'send', 'jobs', String(n))
    const first = await claim('jobs')
    expect(await json('queues', 'extend', 'jobs', ...held(first), '--lease-ms', '60000')).toMatchObject({
      held: true,
    })
    await json('queues', 'return', 'jobs', ...held(first))
    const once = await claim('jobs')
    expect(once).toMatchObject({ id: first.id, attempt: 1 })
    expect(
      await json('queues', 'retry', 'jobs', ...held(once), '--delay-ms', '0', '--error', 'late'),
    ).toEqual({
      id: once.id,
      held: true,
      dead: false,
    })
    for (const _ of [1, 2])
      await json('queues', 'fail', 'jobs', ...held(await claim('jobs')), '--reason', 'no\u001b[2J good')
    const dead = await cli(['queues', 'dead', 'jobs'])
    expect(dead.out).toMatch(/^id +died +attempts +type +reason +data\n/)
    expect(dead.out).toContain('no\\u001b[2J good')
    expect(await json('queues', 'redrive', 'jobs', '--id', String(first.id))).toEqual({
      redriven: [first.id],
    })
    expect((await cli(['queues', 'purge', 'jobs'])).code).toBe(2)
    expect(await json('queues', 'purge', 'jobs', '--all')).toEqual({ deleted: 1 })
    expect(await cli(['queues', 'dead', 'jobs'])).toMatchObject({
      code: 0,
      out: '',
      err: 'There are no dead letters in jobs.\n',
    })
    expect((await cli(['queues', 'list'])).out).toMatch(
      /^queue +ready +delayed +blocked +leased +dead +oldest ready\njobs +1 /,
    )
  })

  it('takes the data from stdin, and says what is wrong with it', async () => {
    expect(await cli(['queues', 'send', 'typed'], { stdin: '[1]' })).toMatchObject({ code: 0 })
    expect(await claim('typed')).toMatchObject({ dataText: '[1]' })
    expect(await cli(['queues', 'send', 'typed', '{a:1}'])).toMatchObject({ code: 1, out: '' })
    expect(await cli(['queues', 'send', 'typed'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('stdin') as string,
    })
    expect(await cli(['queues', 'show', 'nothing'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('(NOT_FOUND)') as string,
    })
  })
})

describe('millrace topics', () => {
  it('binds, publishes, lists and unbinds', async () => {
    expect(await cli(['topics', 'list'])).toMatchObject({
      code: 0,
      err: expect.stringContaining('No queue is bound') as string,
    })
    expect(await json('topics', 'bind', 'news', 'one')).toEqual({ bound: true })
    expect(await json('topics', 'bind', 'news', 'one')).toEqual({ bound: false })
    await json('topics', 'bind', 'news', 'two')
    expect(await cli(['topics', 'publish', 'news', '1'])).toMatchObject({ out: '✓ sent to 2 queues\n' })
    expect(await claim('two')).toMatchObject({ dataText: '1' })
    expect((await cli(['topics', 'list'])).out).toMatch(/^topic +queues\nnews +2\n$/)
    expect((await cli(['topics', 'show', 'news'])).out).toBe('queue\none\ntwo\n')
    await json('topics', 'unbind', 'news', 'two')
    expect(await cli(['topics', 'unbind', 'news', 'two'])).toMatchObject({ code: 1 })
  })
})

describe('millrace locks', () => {
  it('takes, shows, renews and releases, each for its holder only (Q4)', async () => {
    const lock = await json<{ token: string; fence: number }>(
      'locks',
      'acquire',
      'nightly',
      '--ttl-ms',
      '600000',
    )
    expect(await cli(['locks', 'acquire', 'nightly', '--ttl-ms', '1000'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('held by another (CONFLICT)') as string,
    })
    expect((await cli(['locks', 'show', 'nightly'])).out).toMatch(/^held +true$/m)
    expect(await json('locks', 'renew', 'nightly', lock.token, '--ttl-ms', '900000')).toHaveProperty('until')
    expect(await cli(['locks', 'release', 'nightly', crypto.randomUUID()])).toMatchObject({ code: 1 })
    expect(await cli(['locks', 'release', 'nightly', lock.token])).toMatchObject({
      out: '✓ released nightly\n',
    })
    expect(await json('locks', 'show', 'nightly')).toMatchObject({ held: false, fence: lock.fence })
  })
})

describe('millrace schedules', () => {
  it('puts, lists, pauses, resumes, runs and deletes', async () => {
    const put = [
      'schedules',
      'put',
      'nightly',
      '{}',
      '--queue',
      'reports',
      '--cron',
      '0 3 * * *',
      '--time-zone',
      'Europe/Berlin',
    ]
    expect((await cli(put)).out).toMatch(/^✓ put nightly: fires next at \d{4}-/)
    expect((await cli(['schedules', 'list'])).out).toMatch(
      /^nightly +0 3 \* \* \* Europe\/Berlin +queue reports +active /m,
    )
    expect(await json('schedules', 'pause', 'nightly')).toMatchObject({ paused: true })
    expect((await cli(['schedules', 'list'])).out).toContain('paused')
    expect(await json('schedules', 'run', 'nightly')).toMatchObject({ number: expect.any(Number) as number })
    expect(await claim('reports')).toMatchObject({ dataText: '{}' })
    expect(await json('schedules', 'resume', 'nightly')).toMatchObject({ paused: false })
    expect((await cli(['schedules', 'show', 'nightly'])).out).toMatch(/^catchUp +last$/m)
    expect(await cli(['schedules', 'delete', 'nightly'])).toMatchObject({ out: '✓ deleted nightly\n' })
    expect(await cli(['schedules', 'run', 'nightly'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('(NOT_FOUND)') as string,
    })
    expect(await cli(['schedules', 'put', 'x', '1'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--queue') as string,
    })
    expect(await cli(['schedules', 'put', 'x', '1', '--queue', 'q', '--cron', 'never'])).toMatchObject({
      code: 1,
    })
  })
})

describe('millrace keys', () => {
  it('creates one that opens what its scopes say until it is revoked', async () => {
    const created = await cli(['keys', 'create', 'shop', '--scopes', 'publish', '--stream-prefix', 'shop.'])
    expect(created.out).toMatch(
      /^✓ created key_\w{20} \(publish\)\n {2}key {2}mr_key_\w{48} \(shown this once\)\n$/,
    )
    const [id, key] = [/key_\w{20}/.exec(created.out)![0], /mr_key_\w+/.exec(created.out)![0]]
    const env = { MILLRACE_URL: server.url, MILLRACE_KEY: key }
    const publish = (stream: string) => cli(['publish', stream, '1', '--type', 'a'], { env })
    expect(await publish('shop.orders')).toMatchObject({ code: 0 })
    expect(await publish('orders')).toMatchObject({
      code: 1,
      err: expect.stringContaining('(FORBIDDEN)') as string,
    })
    const listed = await cli(['keys', 'list'])
    expect(listed.out).toMatch(
      new RegExp(`^id +name +scopes +streams +created\\n${id} +shop +publish +shop\\.\\* +\\d{4}-`),
    )
    expect(listed.out).not.toContain(key.slice(7))
    expect(await cli(['keys', 'revoke', id])).toEqual({ code: 0, out: `✓ revoked ${id}\n`, err: '' })
    expect(await publish('shop.orders')).toMatchObject({
      code: 1,
      err: expect.stringContaining('does not take the key') as string,
    })
    expect(await cli(['keys', 'create', 'x', '--scopes', 'all'])).toMatchObject({ code: 1 })
    expect(await cli(['keys', 'create', 'x'])).toMatchObject({ code: 2 })
  })
})

describe('the help', () => {
  it.each(['queues', 'topics', 'locks', 'schedules', 'keys', 'notify', 'grants'])(
    'of millrace %s stands in lines of at most 100',
    async (command) => {
      const { code, out } = await cli([command, '--help'])
      expect(code).toBe(0)
      expect(out).toMatch(new RegExp(`^Usage: millrace ${command}`))
      expect(out.split('\n').filter((line) => line.length > 100)).toEqual([])
    },
  )
})
