import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'

const made: TestDatabase[] = []
afterEach(async () => {
  await Promise.all(made.splice(0).map((database) => database.drop()))
})

async function create(template?: Parameters<typeof createTestDatabase>[0]): Promise<string> {
  const database = await createTestDatabase(template)
  made.push(database)
  return database.url
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

describe('a test database', () => {
  it('refuses unqualified names', async () => {
    const url = await create()
    await query(url, 'create table public.thing (id int)')
    await expect(query(url, 'select * from thing')).rejects.toMatchObject({ code: '42P01' })
    await expect(query(url, 'create table other (id int)')).rejects.toMatchObject({ code: '3F000' })
  })

  it('is a copy of its template, which is filled once even when many ask at once', async () => {
    let prepared = 0
    const template = {
      name: 'counted',
      async prepare(url: string) {
        prepared += 1
        await query(url, 'create table public.from_template (id int)')
      },
    }
    const urls = await Promise.all(Array.from({ length: 6 }, () => create({ template })))
    for (const url of urls) expect(await query(url, 'select * from public.from_template')).toEqual([])
    expect(prepared).toBe(1)
    expect(new Set(urls).size).toBe(6)
  })

  it('fills the template again after a failed attempt', async () => {
    const broken = { name: 'retried', prepare: () => Promise.reject(new Error('no')) }
    await expect(createTestDatabase({ template: broken })).rejects.toThrow('no')
    const url = await create({ template: { name: 'retried', prepare: async () => {} } })
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('is gone after drop, sessions and all', async () => {
    const database = await createTestDatabase()
    const client = new pg.Client({ connectionString: database.url })
    // pg reports the server's farewell first, then the closed socket.
    const lost = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await database.drop()
    await expect(lost).resolves.toMatchObject({ code: '57P01' })
    await expect(query(database.url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
  })
})
