import { afterEach, expect, it, vi } from 'vitest'
import { adoptEnvironment } from '../../src/db/adopt-environment.ts'
import { startServe } from '../../src/node/run-serve.ts'
import { readSettings } from '../../src/settings.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { openFor } from './support/original.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

it('W7: a server that delivers says once that it does not, and once that it goes on', async () => {
  const database = await createMigratedDatabase()
  ends.push(() => database.drop())
  const db = openFor(database, null)
  ends.push(() => db.close())
  const lines: string[] = []
  const note = (_facts: object, message: string) => void lines.push(message)
  const ports = createSystemPorts({ debug: note, info: note, warn: note, error: note })
  const env = {
    DATABASE_URL: database.url,
    MILLRACE_ROOT_KEY: 'Root-key-0123456789',
    MILLRACE_ENVIRONMENT: 'preview-12',
    PORT: '0',
  }
  const server = await startServe({ settings: readSettings(env), ports, host: '127.0.0.1', deliver: true })
  ends.push(() => server.stop())
  const about = (words: string) => lines.filter((line) => line.includes(words)).length
  const within = { timeout: 20_000, interval: 20 }
  await vi.waitFor(() => expect(about('nothing is delivered')).toBe(1), within)
  expect(about('goes on')).toBe(0)
  await adoptEnvironment(db, { environment: 'preview-12' })
  await vi.waitFor(() => expect(about('delivery goes on')).toBe(1), within)
  expect(about('nothing is delivered')).toBe(1)
}, 60_000)
