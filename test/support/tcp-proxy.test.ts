import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { createTcpProxy, type TcpProxy } from './tcp-proxy.ts'

let database: TestDatabase
let proxy: TcpProxy
const clients: pg.Client[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(async () => {
  const { hostname, port } = new URL(inject('adminUrl'))
  proxy = await createTcpProxy({ host: hostname, port: Number(port || 5432) })
})
afterEach(async () => {
  await proxy.close()
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => {})))
})
afterAll(() => database.drop())

async function connect(connectionTimeoutMillis = 5000): Promise<{ client: pg.Client; lost: Promise<Error> }> {
  const client = new pg.Client({ connectionString: proxy.through(database.url), connectionTimeoutMillis })
  clients.push(client)
  const lost = new Promise<Error>((resolve) => client.on('error', resolve))
  await client.connect()
  return { client, lost }
}

describe('the TCP proxy', () => {
  it('lets data through', async () => {
    const { client } = await connect()
    const big = 'x'.repeat(3_000_000)
    const { rows } = await client.query<{ big: string }>('select $1::text as big', [big])
    expect(rows[0]!.big === big).toBe(true)
    expect(proxy.connections()).toBe(1)
    await client.end()
    await expect.poll(() => proxy.connections()).toBe(0)
  })

  it('resets what stands when cut, and takes new connections', async () => {
    const { lost } = await connect()
    proxy.cut()
    expect(await lost).toMatchObject({ code: 'ECONNRESET' })
    const { client } = await connect()
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await proxy.waitForAccepted(2)
  })

  it('lets nobody in while it refuses', async () => {
    const { lost } = await connect()
    proxy.refuse()
    await lost
    await expect(connect()).rejects.toThrow()
    proxy.heal()
    await connect()
  })

  it('is silent as a blackhole, for old connections and new', async () => {
    const { client, lost } = await connect()
    proxy.blackhole()
    const query = client.query('select 1').catch((error: unknown) => error)
    // The second connection times out, and the query of the first is unanswered still.
    await expect(connect(300)).rejects.toThrow(/timeout/)
    const first = await Promise.race([query, lost, Promise.resolve('silence')])
    expect(first).toBe('silence')
    proxy.heal()
    expect(await query).toBeInstanceOf(Error)
    await connect()
  })
})
