import { sql } from 'drizzle-orm'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addressFindings, looksPooled } from '../../src/cli/doctor/address-findings.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { runQuery } from '../../src/db/run.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readSettings } from '../../src/settings.ts'
import { systemClock } from '../../src/system-ports.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'
import { deleteWebhook } from '../../src/webhooks/delete-webhook.ts'
import { createSealer } from '../../src/webhooks/seal.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startApiServer, type ApiServer } from '../support/api-server.ts'
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { envOf, run } from './support/run.ts'

if (!hasPgBouncer) process.stderr.write('not run: doctor behind a real PgBouncer (there is none here)\n')

let server: ApiServer
let empty: TestDatabase

beforeAll(async () => {
  server = await startApiServer()
  empty = await createTestDatabase()
})
afterAll(async () => {
  await server.close()
  await empty.drop()
})

interface Report {
  code: number
  /** Level and text by topic; the last of several of one topic. */
  topics: Record<string, { level: string; text: string }>
}

async function doctor(env: Record<string, string> = {}): Promise<Report> {
  const { code, out } = await run(['doctor', '--json'], {
    env: { ...envOf(server), DATABASE_URL: server.databaseUrl, ...env },
  })
  const findings = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { topic: string; level: string; text: string })
  return { code, topics: Object.fromEntries(findings.map(({ topic, ...rest }) => [topic, rest])) }
}

const ok = (text: RegExp) => ({ level: 'ok', text: expect.stringMatching(text) })

describe('millrace doctor', () => {
  it('finds everything well where it is', async () => {
    const { code, topics } = await doctor({ MILLRACE_ENCRYPTION_KEY: 'a-key-of-some-length' })
    expect(code).toBe(0)
    expect(topics).toEqual({
      version: ok(/^Postgres \d+/),
      server: ok(/is ready/),
      key: ok(/takes the key from MILLRACE_KEY/),
      database: ok(/answers in [\d.]+ ms \(node-postgres\)/),
      pooler: ok(/direct/),
      migrations: ok(/all \d+ applied in schema millrace/),
      clocks: ok(/\d+ ms (behind|ahead)/),
      wakes: ok(/^listening/),
      installation: ok(/environment not named/),
      horizon: ok(/no stream is held back/),
    })
  })

  it('finds secrets that cannot be opened, with a wrong key and with none', async () => {
    const sealer = await createSealer({ current: 'the key that it was sealed with' })
    const db = createNodePostgresDb({ url: server.databaseUrl })
    const input = { stream: 'sealed', url: 'https://example.com/' }
    const { id } = await createWebhook(db, input, { sealer, policy: { allowInsecure: false } })
    for (const MILLRACE_ENCRYPTION_KEY of ['a-key-of-some-length', '']) {
      const { code, topics } = await doctor({ MILLRACE_ENCRYPTION_KEY })
      const text = expect.stringMatching(/secrets of webhooks cannot be opened \(1\)/)
      expect([code, topics['encryption']]).toEqual([1, { level: 'fail', text }])
    }
    await deleteWebhook(db, id, { clock: systemClock })
    await db.close()
  })

  it('prints a line for each finding, and never the password of the database', async () => {
    const env = { ...envOf(server), DATABASE_URL: server.databaseUrl }
    const { out, err } = await run(['doctor'], { env })
    expect(out).toMatch(/^✓ migrations {4}all/m)
    expect(out).toMatch(/^! encryption {4}MILLRACE_ENCRYPTION_KEY is not set/m)
    expect(out + err).not.toContain(new URL(server.databaseUrl).password)
  })

  it('W7: fails where the database belongs to another environment', async () => {
    const { code, topics } = await doctor({ MILLRACE_ENVIRONMENT: 'staging' })
    expect(code).toBe(1)
    expect(topics.installation).toMatchObject({
      level: 'fail',
      text: expect.stringContaining('nothing is delivered'),
    })
  })

  it('W7: tells of a server that delivers nothing', async () => {
    const db = createNodePostgresDb({ url: server.databaseUrl })
    const name = (environment: string | null) =>
      runQuery(db, sql`update ${db.tables.installation} set environment = ${environment}::text`)
    await name('staging')
    try {
      expect((await doctor()).topics.server).toMatchObject({
        level: 'fail',
        text: expect.stringContaining('delivery: foreign_environment'),
      })
    } finally {
      await name(null)
      await db.close()
    }
  })

  it('tells a refused key, and a server that is away', async () => {
    expect((await doctor({ MILLRACE_KEY: 'wrong' })).topics.key?.level).toBe('fail')
    const { code, topics } = await doctor({ MILLRACE_URL: 'http://127.0.0.1:9' })
    expect(code).toBe(0)
    expect(topics.server).toMatchObject({ level: 'warn', text: expect.stringContaining('nothing answers') })
  })

  it('says that wakes do not come where listening is switched off', async () => {
    expect((await doctor({ MILLRACE_LISTEN: '0' })).topics.wakes).toMatchObject({
      level: 'warn',
      text: expect.stringMatching(/^polling, so everything comes later: /),
    })
  })

  it.runIf(hasPgBouncer)(
    'tells a pooler that lets no wake through, whatever its address looks like',
    async () => {
      const pooler = await startPgBouncer(server.databaseUrl)
      try {
        const DATABASE_URL = pooler.through(server.databaseUrl)
        const { topics } = await doctor({ DATABASE_URL })
        expect(topics.wakes).toMatchObject({
          level: 'warn',
          text: expect.stringMatching(/^polling, .* is this a transaction-mode pooler\?$/),
        })
        expect(topics.migrations?.level).toBe('ok')
        const both = await doctor({ DATABASE_URL, DATABASE_URL_UNPOOLED: server.databaseUrl })
        expect(both.topics.wakes).toMatchObject(ok(/^listening/))
      } finally {
        await pooler.close()
      }
    },
  )

  it('tells a database that is away, in one finding', async () => {
    const { code, topics } = await doctor({ DATABASE_URL: 'postgres://u:secret@127.0.0.1:9/x' })
    expect(code).toBe(1)
    expect(topics.database).toMatchObject({
      level: 'fail',
      text: expect.stringContaining('(DATABASE_UNAVAILABLE)'),
    })
    expect(JSON.stringify(topics)).not.toContain('secret')
  })

  it('makes no database where there is none', async () => {
    const dataDir = join(tmpdir(), `millrace-none-${process.pid}`)
    const { code, out } = await run(['doctor'], { env: { ...envOf(server), MILLRACE_DATA_DIR: dataDir } })
    expect(code).toBe(1)
    expect(out).toContain(`DATABASE_URL is not set, and there is no embedded database in ${dataDir}`)
    expect(existsSync(dataDir)).toBe(false)
  })

  it('names who holds a stream back', async () => {
    await publishEvents(server.db, 'held', [{ type: 'a', dataText: '1' }])
    await server.db.transaction(async (tx) => {
      await publishEvents(server.db, 'held', [{ type: 'a', dataText: '2' }], { tx: tx.drizzle })
      const { code, topics } = await doctor()
      expect(code).toBe(0)
      expect(topics.horizon).toMatchObject({
        level: 'note',
        text: expect.stringMatching(
          /^stream held is held back by pid \d+ \(\w+, millrace, idle in transaction, for [\d.]+ s\)/,
        ),
      })
    })
  })
})

describe('millrace migrate', () => {
  it('tells what it would do, does it, and then finds nothing to do', async () => {
    const migrate = (...args: string[]) => run(['migrate', ...args], { env: { DATABASE_URL: empty.url } })
    const planned = await migrate('--dry-run')
    expect(planned.code).toBe(0)
    expect(planned.out).toMatch(
      /^would apply 0000_tables\n[^]*\d+ of \d+ migrations are missing in schema millrace/,
    )
    expect((await doctor({ DATABASE_URL: empty.url })).topics.migrations).toMatchObject({
      level: 'fail',
      text: expect.stringContaining('run `millrace migrate`'),
    })
    expect((await migrate()).out).toMatch(/^applied 0000_tables\n[^]*✓ \d+ of \d+ migrations were applied/)
    expect((await migrate()).out).toMatch(/^✓ schema millrace is up to date \(\d+ migrations\)/)
  })

  it('finds, as doctor and grants do, that a table has gone', async () => {
    const db = createNodePostgresDb({ url: empty.url })
    await runQuery(db, sql`alter table millrace.dedupe_keys rename to x`)
    await db.close()
    const text = 'schema "millrace" lacks the table dedupe_keys, which the migrations have made'
    expect((await doctor({ DATABASE_URL: empty.url })).topics.migrations).toMatchObject({
      level: 'fail',
      text: expect.stringContaining(text) as string,
    })
    for (const args of [['migrate'], ['migrate', '--dry-run'], ['grants', '--check']]) {
      const { code, out, err } = await run(args, { env: { DATABASE_URL: empty.url } })
      expect([code, out]).toEqual([1, ''])
      expect(err).toContain(text)
      expect(err).toContain('(NOT_MIGRATED)')
    }
  })

  it('fails in one line where there is no database', async () => {
    const { code, out, err } = await run(['migrate'], { env: { DATABASE_URL: 'mysql://a' } })
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^millrace: DATABASE_URL must begin with postgres:\/\/ .*\(INVALID_SETTING\)\n$/)
  })
})

describe('what an address tells', () => {
  it('is whether it looks like a pooler', () => {
    const pooled = [
      'ep-a-1-pooler.eu.aws.neon.tech',
      'aws-0-eu.pooler.supabase.com',
      'db:6543',
      'pgbouncer',
      'a:6432',
    ]
    const direct = ['ep-a-1.eu.aws.neon.tech', 'localhost:5432', 'db.poolers.example']
    expect(pooled.filter((host) => !looksPooled(`postgres://u:p@${host}/d`))).toEqual([])
    expect(direct.filter((host) => looksPooled(`postgres://u:p@${host}/d`))).toEqual([])
  })

  it('is a warning for a pooler without a direct address, and a note for Neon', () => {
    const levels = (DATABASE_URL: string, DATABASE_URL_UNPOOLED = ''): string[] =>
      addressFindings(readSettings({ DATABASE_URL, DATABASE_URL_UNPOOLED })).map(
        ({ topic, level }) => `${topic} ${level}`,
      )
    expect(levels('postgres://u:p@db:6543/d')).toEqual(['pooler warn'])
    expect(levels('postgres://u:p@db:6543/d', 'postgres://u:p@db/d')).toEqual(['pooler ok'])
    expect(levels('postgres://u:p@ep-a-pooler.x.neon.tech/d')).toEqual(['pooler ok', 'sleep note'])
  })
})
