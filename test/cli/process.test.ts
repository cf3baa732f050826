import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type Client } from '../../src/client/client.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { createWaiters } from '../support/waiters.ts'
import { envOf } from './support/run.ts'

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
/** Starting Node and compiling takes a second, and several on a busy machine. */
const patienceMs = 25_000

let server: ApiServer
let client: Client
const children = new Set<ChildProcessWithoutNullStreams>()

beforeAll(async () => {
  server = await startApiServer({ deliver: true })
  client = createClient({ url: server.url, key: server.rootKey })
})
afterAll(() => server.close())
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
})

interface Child {
  child: ChildProcessWithoutNullStreams
  out(): string
  err(): string
  until(met: (out: string, err: string) => boolean): Promise<void>
  /** The exit code. */
  ended: Promise<number | null>
}

/** The command in a process of its own, as a user has it. */
function spawnCli(...args: string[]): Child {
  const waiters = createWaiters()
  const texts = { out: '', err: '' }
  const env = { PATH: process.env.PATH, ...envOf(server) }
  const child = spawn(process.execPath, ['--import', 'tsx', main, ...args], { env })
  children.add(child)
  const collect = (name: 'out' | 'err') => (chunk: string) => {
    texts[name] += chunk
    waiters.changed()
  }
  child.stdout.setEncoding('utf8').on('data', collect('out'))
  child.stderr.setEncoding('utf8').on('data', collect('err'))
  return {
    child,
    out: () => texts.out,
    err: () => texts.err,
    until: (met) =>
      waiters.until(
        () => met(texts.out, texts.err),
        patienceMs,
        () => `printed ${JSON.stringify(texts)}`,
      ),
    ended: new Promise((resolve) => child.once('close', (code) => resolve(code))),
  }
}

describe('millrace in a process of its own', () => {
  it('publishes what is piped into it', async () => {
    const { child, out, err, ended } = spawnCli('publish', 'piped', '--ndjson', '-', '--json')
    child.stdin.end('{"type":"a","data":1}\n{"type":"a","data":2}\n')
    expect([await ended, err()]).toEqual([0, ''])
    expect(JSON.parse(out())).toMatchObject({ events: 2 })
  })

  it('does not wait for the end of a pipe when it has failed', async () => {
    const { child, err, ended } = spawnCli('publish', 'piped', '--ndjson', '-')
    child.stdin.write('{"type":"a"\n')
    expect(await ended).toBe(1)
    expect(err()).toMatch(/^millrace: line 1 is not valid JSON .*\n$/)
  })

  it.each([
    [1, ['publish', 's', '{', '-t', 'a']],
    [2, ['publish', 's', '{}']],
    [0, ['--version']],
  ])('exits with %i for %j', async (code, args) => {
    expect(await spawnCli(...args).ended).toBe(code)
  })

  it('tail ends on SIGINT with 0, and nothing on stderr', async () => {
    await publishEvents(server.db, 'tailed', [{ type: 'a', dataText: '1' }])
    const { child, until, err, ended } = spawnCli('tail', 'tailed', '--from', 'start', '--follow')
    await until((out) => out.includes('a  1\n'))
    child.kill('SIGINT')
    expect([await ended, err()]).toEqual([0, ''])
  })

  it('tail ends when nobody reads on, as before `head`', async () => {
    const many = Array.from({ length: 3000 }, (_, index) => ({
      type: 'a',
      dataText: `"${index}${'x'.repeat(100)}"`,
    }))
    await publishEvents(server.db, 'long', many)
    const { child, err, ended } = spawnCli('tail', 'long', '--follow', '--from', 'start')
    child.stdout.once('data', () => child.stdout.destroy())
    expect([await ended, err()]).toEqual([0, ''])
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('listen removes its webhook on %s', async (signal) => {
    const stream = `left-by-${signal}`
    const { child, until, err, ended } = spawnCli('listen', '--port', '0', '--stream', stream)
    await until((_out, err) => err.includes('Ctrl-C ends.'))
    expect((await client.webhooks.list({ stream })).webhooks).toHaveLength(1)
    await publishEvents(server.db, stream, [{ type: 'a', dataText: '1' }])
    await until((out) => out.includes('✓ verified'))
    child.kill(signal)
    expect(await ended).toBe(0)
    expect(err()).toContain('Removed webhook wh_')
    expect((await client.webhooks.list({ stream })).webhooks).toEqual([])
  })
})
