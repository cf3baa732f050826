import pg from 'pg'
import { expect, it } from 'vitest'
import { guardPool } from '../../src/db/drivers/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { createTcpProxy } from '../support/tcp-proxy.ts'

it('gives up a statement whose connection has fallen silent, and its place in the pool', async ({
  onTestFinished,
}) => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const { hostname, port } = new URL(database.url)
  const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
  onTestFinished(() => proxy.close())
  const pool = new pg.Pool({ connectionString: proxy.through(database.url), max: 1 })
  const cut = (client: pg.PoolClient): void => {
    ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
  }
  const guarded = guardPool<pg.PoolClient>(pool as never, cut, 500)
  onTestFinished(() => guarded.close())
  const one = async (): Promise<unknown> => (await pool.query('select 1 as n')).rows

  expect(await one()).toEqual([{ n: 1 }])
  proxy.blackhole()
  await expect(one()).rejects.toThrow('Connection terminated')
  proxy.heal()
  expect(await one()).toEqual([{ n: 1 }])
  // a transaction is its owner's, and may take its time
  const client = await guarded.acquire()
  await client.query('select pg_catalog.pg_sleep(0.7)')
  client.release()
})
