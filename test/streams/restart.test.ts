import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import type { Db } from '../../src/db/port.ts'
import { createMillrace } from '../../src/millrace.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

/** Opens the store again: it goes on after the second of three events, and takes a fourth. */
async function expectToGoOn(db: Db): Promise<void> {
  const millrace = createMillrace({ db })
  const stream = millrace.stream('s')
  const subscription = stream.consumer('c').subscribe()
  expect((await subscription.next()).value).toMatchObject({ data: 3 })
  const offset = await stream.publish({ type: 't', data: 4 })
  expect((await subscription.next()).value).toMatchObject({ data: 4, offset })
  expect(offset).toBeGreaterThan(3)
  expect((await stream.read()).events.map(({ data }) => data)).toEqual([1, 2, 3, 4])
  await millrace.close()
}

describe('a store that is opened again', () => {
  it('goes on from the saved offset on Postgres', async () => {
    const database = await createMigratedDatabase()
    const millrace = createMillrace({ db: createNodePostgresDb({ url: database.url }) })
    const stream = millrace.stream('s')
    await stream.publishMany([1, 2, 3].map((data) => ({ type: 't', data })))
    const subscription = stream.consumer('c').subscribe()
    await subscription.next()
    await subscription.next()
    await subscription.save()
    await millrace.close()
    await expectToGoOn(createNodePostgresDb({ url: database.url }))
    await database.drop()
  })

  it(
    'goes on from the saved offset on PGlite, after its process was killed',
    { timeout: 180_000 },
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-restart-'))
      const script = fileURLToPath(new URL('support/pglite-writer.ts', import.meta.url))
      const child = spawn(process.execPath, ['--import', 'tsx', script, folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      try {
        const [line] = (await once(child.stdout, 'data')) as [Buffer]
        expect(line.toString()).toBe('saved 2\n')
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        expect(await ended).toEqual([null, 'SIGKILL'])
        await expectToGoOn(createPgliteDb({ dataDir: folder }))
        await expectClosedWell(folder)
      } finally {
        child.kill('SIGKILL')
        await rm(folder, { recursive: true, force: true })
      }
    },
  )
})

/** Opened a third time, after an orderly close, it holds the same. */
async function expectClosedWell(folder: string): Promise<void> {
  const millrace = createMillrace({ db: createPgliteDb({ dataDir: folder }) })
  expect((await millrace.stream('s').read()).events.map(({ data }) => data)).toEqual([1, 2, 3, 4])
  await millrace.close()
}
