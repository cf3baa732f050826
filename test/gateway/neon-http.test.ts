import { neon, NeonDbError } from '@neondatabase/serverless'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { NeonGateway } from '../../src/gateway/neon-gateway.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startGateway, useGateway } from '../support/gateway.ts'

let database: TestDatabase
let gateway: NeonGateway
let sql: ReturnType<typeof neon<false, false>>

let undo: () => void
beforeAll(async () => {
  database = await createTestDatabase()
  gateway = await startGateway(database.url)
  undo = useGateway(gateway)
  sql = neon(database.url)
  await sql`create table public.item (id int primary key check (id > 0), label text)`
})

afterAll(async () => {
  undo()
  await gateway.close()
  await database.drop()
})

/** Looks at the server past the gateway, so as not to disturb its connections. */
async function look(query: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    return (await client.query(query)).rows
  } finally {
    await client.end()
  }
}

describe('the HTTP driver through the gateway', () => {
  it('gets typed values, nulls, arrays, bytes and JSON back', async () => {
    const [row] =
      await sql`select ${7}::int4 as int, ${'9007199254740993'}::int8 as big, ${null}::text as nothing,
      ${true}::bool as yes, ${['a', 'b,c', null]}::text[] as list, ${Buffer.from([0, 1, 255])}::bytea as bytes,
      ${'{"b":1, "a": [1,2]}'}::json as doc, '2026-01-02T03:04:05Z'::timestamptz as at`
    expect(row).toEqual({
      int: 7,
      big: '9007199254740993',
      nothing: null,
      yes: true,
      list: ['a', 'b,c', null],
      bytes: Buffer.from([0, 1, 255]),
      doc: { b: 1, a: [1, 2] },
      at: new Date('2026-01-02T03:04:05Z'),
    })
  })

  it('gets JSON text byte for byte (S9)', async () => {
    const text = '{"a":1.0, "a" : 2,"n":"\\u0000"}'
    expect(await sql`select ${text}::json::text as text`).toEqual([{ text }])
  })

  it('gets full results with command, row count and fields', async () => {
    const result = await neon(database.url, {
      fullResults: true,
      arrayMode: true,
    })`select 1::int4 as a, 2::int4 as a`
    expect(result).toMatchObject({ command: 'SELECT', rowCount: 1, rows: [[1, 2]], rowAsArray: true })
    expect(result.fields.map(({ name, dataTypeID }) => ({ name, dataTypeID }))).toEqual([
      { name: 'a', dataTypeID: 23 },
      { name: 'a', dataTypeID: 23 },
    ])
  })

  it('gets an error with the fields of Postgres', async () => {
    await sql`insert into public.item values (1, 'first')`
    const error = await sql`insert into public.item values (1, 'again')`.catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(NeonDbError)
    expect(error).toMatchObject({
      code: '23505',
      severity: 'ERROR',
      detail: 'Key (id)=(1) already exists.',
      schema: 'public',
      table: 'item',
      constraint: 'item_pkey',
    })
    await expect(sql`select nope`).rejects.toMatchObject({ code: '42703', position: '8' })
    await expect(sql`insert into public.item values (-1)`).rejects.toMatchObject({
      constraint: 'item_id_check',
    })
  })

  it('carries a parameter of 2 MiB there and back', async () => {
    const big = 'ä'.repeat(1024 * 1024)
    const [row] = await sql`select ${big}::text as big, octet_length(${big}::text) as bytes`
    expect(row!.bytes).toBe(2 * 1024 * 1024)
    expect(row!.big === big).toBe(true)
  })

  it('calls a procedure that commits, as a single query', async () => {
    await sql`create procedure public.save_and_fail() language plpgsql as $$ begin
      insert into public.item values (100, 'kept'); commit; raise exception 'after the commit'; end $$`
    await expect(sql`call public.save_and_fail()`).rejects.toMatchObject({ code: 'P0001' })
    expect(await sql`select label from public.item where id = 100`).toEqual([{ label: 'kept' }])
  })

  it('refuses two statements in one query', async () => {
    await expect(sql`select 1; select 2`).rejects.toMatchObject({ code: '42601' })
  })

  it('takes wrong passwords for what they are', async () => {
    const url = new URL(database.url)
    url.password = 'wrong'
    await expect(neon(url.href)`select 1`).rejects.toMatchObject({ code: '28P01' })
  })
})

describe('a batch through the gateway', () => {
  it('answers each query', async () => {
    const [one, two] = await sql.transaction([sql`select ${1}::int4 as n`, sql`select ${'x'}::text as s`])
    expect([one, two]).toEqual([[{ n: 1 }], [{ s: 'x' }]])
  })

  it('is rolled back as a whole', async () => {
    const batch = sql.transaction([
      sql`insert into public.item values (200, 'lost')`,
      sql`insert into public.item values (200, 'twice')`,
    ])
    await expect(batch).rejects.toMatchObject({ code: '23505' })
    expect(await sql`select 1 from public.item where id = 200`).toEqual([])
  })

  it('runs at the isolation level and with the access mode it names', async () => {
    const show = [
      sql`show transaction_isolation`,
      sql`show transaction_read_only`,
      sql`show transaction_deferrable`,
    ]
    const shown = await sql.transaction(show, {
      isolationLevel: 'Serializable',
      readOnly: true,
      deferrable: true,
    })
    expect(shown.map(([row]) => Object.values(row!)[0])).toEqual(['serializable', 'on', 'on'])
    const write = sql.transaction([sql`insert into public.item values (300)`], { readOnly: true })
    await expect(write).rejects.toMatchObject({ code: '25006' })
  })

  it('refuses the procedure that commits, as Postgres does', async () => {
    await sql`create procedure public.commits() language plpgsql as $$ begin commit; end $$`
    await expect(sql.transaction([sql`call public.commits()`])).rejects.toMatchObject({ code: '2D000' })
  })
})

describe('the connections behind HTTP queries', () => {
  // Shorter than the idle time of a pooled connection, whose end would hide what it kept.
  const soon = { timeout: 5000 }

  it('keep nothing of the query before', async () => {
    await sql`select set_config('application_name', 'left over', false), pg_advisory_lock(1)`
    const kept = (): Promise<unknown[]> => look("select 1 from pg_locks where locktype = 'advisory'")
    await expect.poll(kept, soon).toEqual([])
    expect(await look("select 1 from pg_stat_activity where application_name = 'left over'")).toEqual([])
  })

  it('are dropped when a query left a transaction open', async () => {
    await sql`begin`
    const open = (): Promise<unknown[]> =>
      look(
        "select 1 from pg_stat_activity where state like 'idle in transaction%' and datname = current_database()",
      )
    await expect.poll(open, soon).toEqual([])
  })

  it('run many queries at once, and are shared by all that one login asks', async () => {
    const rows = await Promise.all(Array.from({ length: 60 }, (_, n) => sql`select ${n}::int4 as n`))
    expect(rows.map(([row]) => row!.n)).toEqual(Array.from({ length: 60 }, (_, n) => n))
    expect(gateway.connections()).toBeLessThanOrEqual(20)
  })

  it('cancel the query of a caller that hangs up', async () => {
    const hangUp = new AbortController()
    const slow = neon(database.url, {
      fetchOptions: { signal: hangUp.signal },
    })`select pg_sleep(60) as slow_one`
    // The driver sends nothing before someone asks for the result.
    const outcome = slow.catch((error: unknown) => error)
    const running = () =>
      sql`select 1 as here from pg_stat_activity where query like '%slow_' || 'one%' and state = 'active' and pid <> pg_backend_pid()`
    await expect.poll(running).toEqual([{ here: 1 }])
    hangUp.abort()
    expect(await outcome).toBeInstanceOf(Error)
    await expect.poll(running).toEqual([])
  })
})
