import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import type { Db } from '../../src/db/port.ts'
import { createApp } from '../../src/http/app.ts'
import { createKey } from '../../src/keys/create-key.ts'
import { revokeKey } from '../../src/keys/revoke-key.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})

/** An app with a clock that the test moves, and what it answers to a request that needs no query of its own. */
function appAt(own: Db) {
  let now = 1_000_000
  const ports = { ...createSystemPorts(), clock: { ...createSystemPorts().clock, now: () => now } }
  const app = createApp({
    db: own,
    rootKey: 'a-root-key-for-these-tests',
    ports,
    targetPolicy: {},
    sealer: null,
  })
  return {
    advance: (ms: number) => void (now += ms),
    async ask(key: string): Promise<number> {
      const headers = { authorization: `Bearer ${key}` }
      return (await app.request('/v1/streams/s/events?limit=0', { headers })).status
    },
  }
}

describe('the gate', () => {
  it('asks the database for a key once in ten seconds, and lets a revoked one in no longer than that', async () => {
    const { id, key } = await createKey(db, { name: 'n', scopes: ['read'] })
    const app = appAt(db)
    expect(await app.ask(key)).toBe(200)
    // by another process
    await revokeKey(db, id)
    app.advance(9_999)
    expect(await app.ask(key)).toBe(200)
    app.advance(1)
    expect(await app.ask(key)).toBe(401)
  })

  it('finds a key that was made after it had been asked for in vain', async () => {
    const app = appAt(db)
    const { key } = await createKey(db, { name: 'n', scopes: ['read'] })
    expect(await app.ask(`mr_key_${'0'.repeat(48)}`)).toBe(401)
    expect(await app.ask(key)).toBe(200)
  })

  it('lets the root key in, and what is no key at all out, without the database', async () => {
    const closed = createNodePostgresDb({ url: database.url })
    await closed.close()
    const app = appAt(closed)
    expect(await app.ask('a-root-key-for-these-tests')).toBe(200)
    expect(await app.ask('another')).toBe(401)
    const { key } = await createKey(db, { name: 'n', scopes: ['read'] })
    expect(await app.ask(key)).toBe(503)
  })
})
