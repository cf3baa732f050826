import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findServer, isLoopback } from '../../src/cli/connection.ts'
import { startReceiver } from '../support/receiver.ts'
import { run } from './support/run.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'))
  await writeFile(join(folder, 'root-key'), 'mr_root_of_the_folder\n')
})
afterAll(() => rm(folder, { recursive: true }))

describe('which server, and as whom', () => {
  it('is the local one with the key of the data folder, unless the environment says otherwise', () => {
    const local = { MILLRACE_DATA_DIR: folder }
    expect(findServer(local)).toEqual({
      url: 'http://localhost:8787',
      key: { value: 'mr_root_of_the_folder', source: join(folder, 'root-key') },
    })
    expect(findServer({ ...local, MILLRACE_ROOT_KEY: 'r' }).key?.value).toBe('r')
    expect(findServer({ ...local, MILLRACE_ROOT_KEY: 'r', MILLRACE_KEY: 'k' }).key?.value).toBe('k')
    expect(findServer({ MILLRACE_DATA_DIR: join(folder, 'none') }).key).toBeNull()
  })

  it('never sends the key of the data folder to another machine', () => {
    for (const url of ['https://millrace.example', 'http://127.0.0.1.example', 'http://localhost.example']) {
      expect(findServer({ MILLRACE_DATA_DIR: folder, MILLRACE_URL: url }).key).toBeNull()
    }
    expect(['http://127.0.0.1:1', 'http://[::1]:1', 'https://localhost'].every(isLoopback)).toBe(true)
  })
})

describe('a server that cannot be talked to', () => {
  it('is told in one line, with what to do', async () => {
    const closed = await startReceiver()
    await closed.close()
    for (const args of [
      ['tail', 's'],
      ['publish', 's', '1', '-t', 'a'],
      ['webhooks', 'list'],
    ]) {
      expect(await run(args, { env: { MILLRACE_URL: closed.url } })).toEqual({
        code: 1,
        out: '',
        err: `millrace: nothing answers at ${closed.url} — is \`npm start\` running?\n`,
      })
    }
  })

  it('that wants a key says how to give one', async () => {
    const other = await startReceiver()
    const body = '{"code":"UNAUTHORIZED","detail":"send the API key"}'
    other.answer({ status: 401, headers: { 'content-type': 'application/problem+json' }, body })
    const { code, err } = await run(['tail', 's'], {
      env: { MILLRACE_URL: other.url, MILLRACE_DATA_DIR: '/nowhere' },
    })
    expect(code).toBe(1)
    expect(err).toMatch(
      /^millrace: the server at \S+ wants a key: set MILLRACE_KEY, or run this in the folder where .*\n$/,
    )
    await other.close()
  })

  it('with an address or key that is none is a wrong setting', async () => {
    expect((await run(['tail', 's'], { env: { MILLRACE_URL: 'localhost:8787' } })).err).toBe(
      'millrace: MILLRACE_URL must begin with http:// or https:// (INVALID_SETTING)\n',
    )
    expect((await run(['tail', 's'], { env: { MILLRACE_KEY: 'a b' } })).err).toBe(
      'millrace: MILLRACE_KEY must be printable ASCII without spaces (INVALID_SETTING)\n',
    )
  })
})

describe('millrace itself', () => {
  it('prints its help, with every command, and the version', async () => {
    const { code, out, err } = await run([])
    expect([code, err]).toEqual([0, ''])
    for (const command of ['publish', 'tail', 'listen', 'webhooks', 'migrate', 'doctor']) {
      expect(out).toMatch(new RegExp(`^ {2}${command} `, 'm'))
    }
    expect((await run(['--help'])).out).toBe(out)
    expect((await run(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect((await run(['help', 'tail'])).out).toMatch(/^Usage: millrace tail/)
  })

  it('keeps the lines of every help within a terminal', async () => {
    for (const command of [
      [],
      ['publish'],
      ['tail'],
      ['listen'],
      ['webhooks'],
      ['webhooks', 'create'],
      ['doctor'],
    ]) {
      const { out } = await run([...command, '--help'])
      expect(out.split('\n').filter((line) => line.length > 88)).toEqual([])
    }
  })

  it('does not know other commands', async () => {
    expect(await run(['publsh', 'a'])).toEqual({
      code: 2,
      out: '',
      err: "millrace: unknown command 'publsh' (Did you mean publish?) (see `millrace --help`)\n",
    })
  })
})
