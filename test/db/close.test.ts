import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import type { Db } from '../../src/db/port.ts'
import { runQuery } from '../../src/db/run.ts'
import { deferred } from '../contract/support/deferred.ts'
import { createTestDatabase } from '../support/database.ts'

/** Closes while a transaction has inserted a row and waits; returns how it ends, once it goes on. */
async function closedInTransaction(db: Db): Promise<unknown> {
  await runQuery(db, sql`create table public.kept (n int)`)
  const [started, gate] = [deferred<void>(), deferred<void>()]
  const running = db.transaction(async (tx) => {
    await runQuery(tx, sql`insert into public.kept values (1)`)
    started.resolve()
    await gate.promise
    await runQuery(tx, sql`select 1`)
  })
  const outcome = running.catch((error: unknown) => error)
  await started.promise
  await db.close()
  gate.resolve()
  return outcome
}

const rows = (db: Db) => runQuery(db, sql`select n from public.kept`)

it('closing in an open transaction ends in time: it fails with STORE_CLOSED and is rolled back', async ({
  onTestFinished,
}) => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const outcome = await closedInTransaction(createNodePostgresDb({ url: database.url }))
  expect(outcome).toMatchObject({ code: 'STORE_CLOSED' })
  const again = createNodePostgresDb({ url: database.url })
  onTestFinished(() => again.close())
  expect(await rows(again)).toEqual([])
}, 60_000)

it('so does closing a PGlite, whose folder opens again', async ({ onTestFinished }) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-close-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const db = createPgliteDb({ dataDir })
  await db.connectDirect()
  expect(await closedInTransaction(db)).toMatchObject({ code: 'STORE_CLOSED' })
  const again = createPgliteDb({ dataDir })
  onTestFinished(() => again.close())
  expect(await rows(again)).toEqual([])
  // a PGlite's start is all computation, and slow beside other work
}, 180_000)
