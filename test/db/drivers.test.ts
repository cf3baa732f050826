import { readFile } from 'node:fs/promises'
import { neonConfig, types } from '@neondatabase/serverless'
import { sql } from 'drizzle-orm'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createNeonHttpDb } from '../../src/db/drivers/neon-http.ts'
import { directNeonUrl } from '../../src/db/drivers/neon-url.ts'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { openDb } from '../../src/db/drivers/open.ts'
import { createPgliteDb } from '../../src/db/drivers/pglite.ts'
import { watchWebSocket } from '../../src/db/drivers/watch-web-socket.ts'
import { runQuery } from '../../src/db/run.ts'
import { createTestDatabase } from '../support/database.ts'
import { emptyPglite, pgliteStartMs } from '../support/pglite.ts'

describe('a connection string', () => {
  const broken = [
    ['empty', ''],
    ['another scheme', 'mysql://u:hunter2@host/db'],
    ['an unescaped password', 'postgres://u:hunter2#@host:5432/db'],
    ['a bad escape', 'postgres://u:hunter2%zz@host/db'],
    ['a bad port', 'postgres://u:hunter2@host:54x/db'],
  ]

  it.each(broken)('that is broken (%s) is refused in one line without its password', async (_, url) => {
    for (const driver of ['auto', 'neon-ws', 'neon-http'] as const) {
      const error = await openDb({ url, driver }).catch((failure: unknown) => failure)
      expect(error).toMatchObject({ code: 'INVALID_SETTING', details: { setting: 'DATABASE_URL' } })
      expect(String(error)).toMatch(/^MillraceError: DATABASE_URL [^\n]+$/)
      expect(String(error)).not.toContain('hunter2')
      expect((error as Error).cause).toBeUndefined()
    }
  })

  it('for the direct connection is named by its own setting', async () => {
    await expect(openDb({ url: 'postgres://u@h/d', directUrl: 'nonsense' })).rejects.toMatchObject({
      details: { setting: 'DATABASE_URL_UNPOOLED' },
    })
  })

  it.each(['postgres://u:p@h/d', 'postgresql://h', 'postgres://u@/d?host=/var/run/postgresql'])(
    'as people write them is taken: %s',
    async (url) => {
      const db = await openDb({ url })
      expect(db.driver).toBe('node-postgres')
      await db.close()
    },
  )

  it.each([
    [
      'postgres://u:p@ep-cool-fog-123456-pooler.eu-central-1.aws.neon.tech/db?sslmode=require',
      'postgres://u:p@ep-cool-fog-123456.eu-central-1.aws.neon.tech/db?sslmode=require',
    ],
    [
      'postgres://u:p@ep-cool-fog-123456.eu.neon.tech/db',
      'postgres://u:p@ep-cool-fog-123456.eu.neon.tech/db',
    ],
    ['postgres://u:p@my-pooler.example.com/db', 'postgres://u:p@my-pooler.example.com/db'],
    ['not a url', 'not a url'],
  ])('of Neon leads to the direct host: %s', (pooled, direct) => {
    expect(directNeonUrl(pooled)).toBe(direct)
  })

  it('is refused for a schema that is no plain identifier', async () => {
    await expect(openDb({ url: 'postgres://h/d', schema: 'a"b' })).rejects.toMatchObject({
      code: 'INVALID_SETTING',
    })
  })
})

describe('an unreachable server', () => {
  it('fails each kind of call with DATABASE_UNAVAILABLE, and closes', async () => {
    // port 1 is reserved, and nothing listens there
    const db = createNodePostgresDb({ url: 'postgres://u:hunter2@127.0.0.1:1/d' })
    const calls: Promise<unknown>[] = [
      runQuery(db, sql`select 1`),
      db.transaction(async () => 1),
      db.connectDirect(),
    ]
    const errors = await Promise.all(calls.map((call) => call.catch((error: unknown) => error)))
    for (const error of errors) {
      expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryable: true })
      expect(String(error)).not.toContain('hunter2')
    }
    await db.close()
  })
})

describe('a half-open socket', () => {
  it.runIf(process.platform === 'linux')(
    'of node-postgres is probed by the kernel within 10 s of silence (S7)',
    async () => {
      const database = await createTestDatabase()
      const db = createNodePostgresDb({ url: database.url })
      const connection = await db.connectDirect()
      const [row] = await connection.query('select inet_client_port()::text as port')
      await vi.waitFor(async () => expect(await keepAliveSeconds(Number(row!.port))).toBeLessThanOrEqual(10))
      await connection.close()
      await db.close()
      await database.drop()
    },
  )

  afterEach(() => vi.useRealTimers())

  function socketThat(answers: () => boolean) {
    let pong = (): void => {}
    return {
      pings: 0,
      on(_event: 'pong', listener: () => void) {
        pong = listener
      },
      ping() {
        this.pings += 1
        if (answers()) pong()
      },
    }
  }

  it('of neon-ws is cut when a ping stays unanswered, at the latest after 20 s (S7)', () => {
    vi.useFakeTimers()
    let alive = true
    const dead = vi.fn<() => void>()
    const stop = watchWebSocket(
      socketThat(() => alive),
      dead,
    )
    vi.advanceTimersByTime(60_000)
    expect(dead).not.toHaveBeenCalled()
    alive = false
    vi.advanceTimersByTime(20_000)
    expect(dead).toHaveBeenCalledTimes(1)
    stop()
  })

  it('is left alone where the WebSocket cannot ping', () => {
    vi.useFakeTimers()
    watchWebSocket({}, () => {})
    expect(vi.getTimerCount()).toBe(0)
  })
})

/** The keepalive timer of a local socket, from /proc/net/tcp: `02:<jiffies in hex>`, at 100 a second. */
async function keepAliveSeconds(localPort: number): Promise<number> {
  const hex = localPort.toString(16).toUpperCase().padStart(4, '0')
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/))
  const timer = lines.find((line) => line[1]?.endsWith(`:${hex}`))?.[5]?.split(':')
  return timer?.[0] === '02' ? parseInt(timer[1]!, 16) / 100 : Number.POSITIVE_INFINITY
}

describe('neon-http', () => {
  it('leaves the type parsers and the endpoint of others in the process as they were', async () => {
    const parser = types.getTypeParser(1184)
    const db = createNeonHttpDb({ url: 'postgres://u:p@h/d', gateway: { host: '127.0.0.1', port: 9999 } })
    expect(types.getTypeParser(1184)).toBe(parser)
    await db.batch(() => []).catch(() => {})
    expect(types.getTypeParser(1184)).toBe(parser)
    const endpoint = neonConfig.fetchEndpoint as (host: string, port: string) => string
    expect(endpoint('127.0.0.1', '9999')).toBe('http://127.0.0.1:9999/sql')
    expect(endpoint('ep-x.eu.neon.tech', '')).toBe('https://api.eu.neon.tech/sql')
  })
})

describe('PGlite', () => {
  it(
    "of the caller's stays open after close, and hears nothing any more",
    async () => {
      const pglite = await emptyPglite()
      const db = createPgliteDb({ pglite })
      const connection = await db.connectDirect()
      await connection.execute('LISTEN here')
      await db.close()
      expect(pglite.closed).toBe(false)
      expect((await pglite.query('select pg_listening_channels()')).rows).toEqual([])
    },
    pgliteStartMs,
  )
})
