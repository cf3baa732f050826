import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { run, type CommandResult } from './support/run.ts'

let database: TestDatabase
let db: Db
beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
  const input = { stream: 'orders', url: 'https://example.com/hook' }
  await createWebhook(db, input, { sealer: null, policy: {} })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})

const adopt = (...flags: string[]): Promise<CommandResult> =>
  run(['adopt', ...flags], { env: { DATABASE_URL: database.url } })

describe('millrace adopt', () => {
  it('tells what it would do, in a dry run', async () => {
    const { code, out } = await adopt('--environment', 'preview-12', '--dry-run')
    expect(code).toBe(0)
    expect(out).toMatch(/^would adopt schema millrace: Postgres at /)
    expect(out).toMatch(/^ {2}webhooks paused {2}1$/m)
    // the id is drawn when it is done
    expect(out).toMatch(/^ {2}installation id {2}[0-9a-f-]{36} -> a new one$/m)
  })

  it('W7: tells what it has done', async () => {
    const { code, out, err } = await adopt('--environment', 'preview-12')
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^✓ adopted schema millrace/)
    expect(out).toMatch(/^ {2}environment {6}\(none\) -> preview-12$/m)
    expect(out).toMatch(/^ {2}installation id {2}[0-9a-f-]{36} -> [0-9a-f-]{36}$/m)
    expect(out).toMatch(/^ {2}leases dropped {3}0 of webhooks, 0 of messages, 0 of locks$/m)
    expect(out).not.toContain(new URL(database.url).password)
  })

  it('refuses what has the name already, and says how to do it all the same', async () => {
    const { code, err } = await adopt('--environment', 'preview-12')
    expect(code).toBe(1)
    expect(err).toContain('belongs to "preview-12" already; --again adopts it all the same')
    expect(await adopt('--environment', 'preview-12', '--again')).toMatchObject({ code: 0 })
  })

  it('only gives the name where that is asked', async () => {
    const { code, out } = await adopt('--environment', 'production', '--keep-identity')
    expect(code).toBe(0)
    expect(out).toMatch(/^ {2}environment {6}preview-12 -> production$/m)
    expect(out).toMatch(/^ {2}installation id {2}[0-9a-f-]{36}, as before$/m)
  })

  it('wants a name', async () => {
    expect(await adopt()).toMatchObject({ code: 2, err: expect.stringContaining('--environment') })
    for (const name of ['', 'a b', '-x', 'ü', 'a\n', 'x'.repeat(65)]) {
      const refused = await adopt(`--environment=${name}`)
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('environment must be 1 to 64') })
    }
  })
})
