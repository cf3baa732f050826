import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eq, sql } from 'drizzle-orm'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createNeonFetchDb } from '../../src/db/drivers/neon-fetch.ts'
import { createNeonHttpDb, type NeonHttpOptions } from '../../src/db/drivers/neon-http.ts'
import type { Db } from '../../src/db/port.ts'
import { runQuery, translated } from '../../src/db/run.ts'
import { startGateway } from '../support/gateway.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

type OpenDb = (options: NeonHttpOptions) => Db
const drivers: [string, OpenDb][] = [
  ['by fetch', createNeonFetchDb],
  ["over Neon's driver", createNeonHttpDb],
]

/** A request as it was sent, but for what the HTTP client adds by itself. */
interface Sent {
  url: string
  method: string | undefined
  headers: Record<string, unknown>
  body: unknown
}

const meaningful = ([name]: [string, unknown]): boolean =>
  name.startsWith('neon-') || name === 'authorization'

/** Statements with every kind of parameter that the rooms send. */
async function someStatements(db: Db): Promise<void> {
  const { streams, schedules } = db.tables
  await runQuery(
    db,
    sql`select ${'é"\\'}::text, ${12}::integer, ${true}::boolean, ${null}::text, ${1.5}::float8`,
  )
  await translated(db.drizzle.select().from(streams).where(eq(streams.name, 'orders')))
  const at = new Date('2026-11-30T10:00:00.123Z')
  await translated(db.drizzle.update(schedules).set({ nextAt: at, paused: false, everyMs: 100 }))
}

describe('a request of Neon by fetch', () => {
  const url = 'postgres://us%40er:p%2Fw@ep-cool-fog-123456-pooler.eu-central-1.aws.neon.tech/db'
  const urls = [
    `${url}?application_name=me`,
    `${url}?sslmode=require&channel_binding=require&application_name=me&options=project%3Dx`,
    'postgresql://u:p@ep-x.us-east-2.aws.neon.tech:5432/other?application_name=a%20b',
  ]
  afterEach(() => vi.unstubAllGlobals())

  async function sentBy(open: OpenDb, url: string): Promise<Sent[]> {
    const sent: Sent[] = []
    vi.stubGlobal('fetch', async (input: string, init: RequestInit) => {
      const headers = Object.fromEntries([...new Headers(init.headers)].filter(meaningful))
      sent.push({ url: input, method: init.method, headers, body: JSON.parse(String(init.body)) })
      return Response.json({ fields: [], rows: [], command: 'SELECT', rowCount: 0 })
    })
    await someStatements(open({ url }))
    return sent
  }

  it.each(urls)("is the one that Neon's own driver sends: %s", async (url) => {
    const [ours, theirs] = [await sentBy(createNeonFetchDb, url), await sentBy(createNeonHttpDb, url)]
    expect(ours).toEqual(theirs)
    expect(ours).toHaveLength(3)
    expect(ours[0]?.url).toMatch(/^https:\/\/api\.[a-z0-9-]+\.aws\.neon\.tech\/sql$/)
  })
})

describe.each(drivers)('an answer of Neon %s', (_how, open) => {
  let close: () => Promise<void>
  let db: Db
  beforeEach(async () => {
    const database = await createMigratedDatabase()
    const gateway = await startGateway(database.url)
    db = open({ url: database.url, gateway })
    close = async () => {
      await db.close()
      await gateway.close()
      await database.drop()
    }
  })
  afterEach(() => close())

  it('is decoded alike where the rooms do not cast', async () => {
    const [row] = await runQuery(
      db,
      sql`select true as yes, false as no, 7::int2 as small, -3 as whole, 9007199254740993::int8 as big,
        1.5::float8 as real, null::bool as nothing, '{"a":[1]}'::json as json, '[null]'::jsonb as jsonb, 'é' as text`,
    )
    expect(row).toEqual({
      ...{ yes: true, no: false, small: 7, whole: -3, big: '9007199254740993', real: 1.5, nothing: null },
      ...{ json: { a: [1] }, jsonb: [null], text: 'é' },
    })
  })

  it('that is an error keeps its SQLSTATE, table and constraint', async () => {
    const { streams } = db.tables
    await translated(db.drizzle.insert(streams).values({ name: 'once' }))
    const twice = translated(db.drizzle.insert(streams).values({ name: 'once' }))
    await expect(twice).rejects.toMatchObject({
      details: { sqlState: '23505', table: 'streams', constraint: expect.stringContaining('name') },
    })
    await db.close()
    await expect(runQuery(db, sql`select 1`)).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

describe.each(drivers)('a proxy of Neon in trouble, %s', (_how, open) => {
  it('is an unavailable database, and no error shows the password', async () => {
    let headers: IncomingHttpHeaders = {}
    const server = createServer((request, response) => {
      headers = request.headers
      response.writeHead(503).end('try later')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const gateway = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
    const db = open({ url: 'postgres://u:hunter2@db.example/x', gateway })
    const error = await runQuery(db, sql`select 1`).catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE', retryable: true })
    expect(String((error as Error).message)).not.toContain('hunter2')
    expect(headers['neon-connection-string']).toContain('hunter2')
    await new Promise((resolve) => server.close(resolve))
  })
})
