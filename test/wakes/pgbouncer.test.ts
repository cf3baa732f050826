import { describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { createMillrace, type Millrace } from '../../src/millrace.ts'
import { createMigratedDatabase } from '../support/migrated.ts'
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'

if (!hasPgBouncer) process.stderr.write('not run: behind a real PgBouncer (there is none on this machine)\n')

/** Publishes in every way there is, and follows. */
async function publishAndFollow({ stream, transaction }: Millrace): Promise<unknown[]> {
  const s = stream('s')
  const subscription = s.consumer('c').subscribe()
  const seen: unknown[] = []
  const following = (async () => {
    for await (const { data } of subscription) if (seen.push(data) === 31) return
  })()
  for (let n = 0; n < 10; n++) {
    await s.publish({ type: 't', data: `alone ${n}` }, { idempotencyKey: `k${n}` })
    await transaction(async (tx) => {
      await s.publish({ type: 't', data: `first ${n}` }, { tx: tx.drizzle })
      await s.publish({ type: 't', data: `second ${n}` }, { tx: tx.drizzle })
    })
    const undone = transaction(async (tx) => {
      await s.publish({ type: 't', data: `undone ${n}` }, { tx: tx.drizzle })
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
  }
  await s.publish({ type: 't', data: 'last' })
  await following
  return seen
}

const all = [
  ...Array.from({ length: 10 }, (_, n) => [`alone ${n}`, `first ${n}`, `second ${n}`]).flat(),
  'last',
]

describe.runIf(hasPgBouncer)('behind a PgBouncer in transaction mode', () => {
  it.each([
    { mode: 'polling' as const, direct: false },
    { mode: 'listening' as const, direct: true },
  ])('S1, N4: a subscriber gets everything once and in order, $mode', async ({ mode, direct }) => {
    const database = await createMigratedDatabase()
    const pooler = await startPgBouncer(database.url)
    const url = pooler.through(database.url)
    const db = createNodePostgresDb({ url, directUrl: direct ? database.url : url })
    const millrace = createMillrace({ db, pollMinMs: 10, pollMaxMs: 100 })
    try {
      expect(await publishAndFollow(millrace)).toEqual(all)
      await millrace.forwarder.waitFor(mode)
      if (!direct) expect(millrace.forwarder.lastError).toMatchObject({ code: 'LISTEN_UNSUPPORTED' })
    } finally {
      await millrace.close()
      await pooler.close()
      await database.drop()
    }
  })
})
