import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it, vi } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { startReceiver } from '../support/receiver.ts'

const rootKey = 'Root-key-0123456789'
const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

function start(env: Record<string, string>): { child: ChildProcess; said: () => string } {
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/node/server.ts'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  child.stderr.on('data', (chunk) => (text += String(chunk)))
  open.push(async () => child.exitCode === null && child.kill('SIGKILL'))
  return { child, said: () => text }
}

it('the example for Node makes its tables, serves, delivers and ends by SIGTERM', async () => {
  const database = await createTestDatabase()
  open.push(() => database.drop())
  const receiver = await startReceiver()
  open.push(() => receiver.close())
  const { child, said } = start({
    DATABASE_URL: database.url,
    MILLRACE_ROOT_KEY: rootKey,
    MILLRACE_ENCRYPTION_KEY: 'a passphrase that is long enough',
    MILLRACE_ALLOW_INSECURE_TARGETS: '1',
    PORT: '0',
  })
  const port = await vi.waitFor(
    () => {
      const found = /"port":(\d+)/.exec(said())?.[1]
      if (found === undefined) throw new Error(`it does not listen: ${said()}`)
      return found
    },
    { timeout: 90_000, interval: 50 },
  )
  const post = async (path: string, body: unknown): Promise<number> => {
    const headers = { authorization: `Bearer ${rootKey}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await fetch(`http://127.0.0.1:${port}${path}`, init)).status
  }
  expect(await post('/v1/webhooks', { stream: 's', url: `${receiver.url}/` })).toBe(201)
  expect(await post('/v1/streams/s/events', { type: 'made', data: 1 })).toBe(201)
  await receiver.waitFor(1, 20_000)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
}, 150_000)
