import { afterEach, beforeEach, expect, it } from 'vitest'
import { adoptEnvironment } from '../../src/db/adopt-environment.ts'
import type { Db } from '../../src/db/port.ts'
import { startForwarder } from '../../src/node/run-forwarder.ts'
import { readSettings } from '../../src/settings.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { startForwarderProcess, type ForwarderProcess } from '../delivery/support/forwarder-process.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { openFor } from './support/original.ts'

let database: TestDatabase
let db: Db
let forwarder: ForwarderProcess | undefined
beforeEach(async () => {
  database = await createMigratedDatabase()
  db = openFor(database, null)
})
afterEach(async () => {
  await forwarder?.kill()
  await db.close()
  await database.drop()
})

it('W7: a forwarder for another environment ends at once, with 78 and a line that says why', async () => {
  forwarder = startForwarderProcess(database.url, { MILLRACE_ENVIRONMENT: 'preview-12' })
  expect(await forwarder.exited).toBe(78)
  expect(forwarder.output()).toMatch(
    /^millrace: the database belongs to another environment.* is not set, .* is "preview-12".*WRONG_ENVIRONMENT/m,
  )
}, 120_000)

it('W7: one whose database is adopted under its hands ends so too, and starts again with the name', async () => {
  await publishEvents(db, 'orders', [{ type: 'made', dataText: '1' }])
  forwarder = startForwarderProcess(database.url)
  await forwarder.ready()
  await adoptEnvironment(db, { environment: 'preview-12' })
  expect(await forwarder.exited).toBe(78)
  expect(forwarder.output()).toContain('WRONG_ENVIRONMENT')
  const env = { DATABASE_URL: database.url, MILLRACE_ENVIRONMENT: 'preview-12' }
  await (await startForwarder(readSettings(env), createSystemPorts())).stop()
}, 180_000)
