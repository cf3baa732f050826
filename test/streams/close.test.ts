import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

const script = fileURLToPath(new URL('support/closing-store.ts', import.meta.url))

it.each(['node-postgres', 'neon-ws'])(
  'a store over %s that is closed in full use leaves neither socket nor timer: its process ends by itself',
  { timeout: 120_000 },
  async (driver) => {
    const database = await createMigratedDatabase()
    const gateway = driver === 'neon-ws' ? await startGateway(database.url) : undefined
    const address = gateway === undefined ? [] : [`${gateway.host}:${gateway.port}`]
    const child = spawn(process.execPath, ['--import', 'tsx', script, database.url, ...address], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      let out = ''
      child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()))
      expect(await once(child, 'close', { signal: AbortSignal.timeout(90_000) })).toEqual([0, null])
      // what was in flight is done, or says why not
      expect(['["done"]', '["done","STORE_CLOSED"]']).toContain(out.trim())
    } finally {
      child.kill('SIGKILL')
      await gateway?.close()
      await database.drop()
    }
  },
)
