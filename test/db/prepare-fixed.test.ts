import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createNodePostgresDb } from '../../src/db/drivers/node-postgres.ts'
import { prepareFixed } from '../../src/db/drivers/prepare-fixed.ts'
import { fixedStatement } from '../../src/db/fixed-statement.ts'
import type { Db } from '../../src/db/port.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import type { TestDatabase } from '../support/database.ts'
import { createMigratedDatabase } from '../support/migrated.ts'

let database: TestDatabase
/** With one session, so that what one statement leaves there is seen by the next. */
let db: Db
beforeEach(async () => {
  database = await createMigratedDatabase()
  db = createNodePostgresDb({ url: database.url, maxConnections: 1 })
})
afterEach(async () => {
  await db.close()
  await database.drop()
})

const event = { type: 't', dataText: '{}' }

async function work(times: number): Promise<number[]> {
  const read: number[] = []
  for (let n = 0; n < times; n++) {
    await publishEvents(db, 's', [event])
    const page = await readEvents(db, 's', { after: read.at(-1) })
    read.push(...page.events.map(({ offset }) => offset))
  }
  return read
}

async function keptHere(client: { query(text: string): Promise<{ rows: { statement: string }[] }> }) {
  const { rows } = await client.query('select statement from pg_prepared_statements order by name')
  return rows.map(({ statement }) => /"publish"|"read_events"|twice/.exec(statement)?.[0])
}

const inSession = {
  query: async (text: string) =>
    (await db.drizzle.execute(text)) as unknown as { rows: { statement: string }[] },
}

describe('fixed statements', () => {
  it('are kept prepared by a session that is the client’s own, once it has seen a few', async () => {
    await work(2)
    expect(await keptHere(inSession)).toEqual([])
    expect(await work(4)).toHaveLength(6)
    expect(new Set(await keptHere(inSession))).toEqual(new Set([`"publish"`, `"read_events"`]))
  })

  it('go on when the function is replaced by one that returns more', async () => {
    await work(5)
    const { rows } = await inSession.query(
      `select pg_get_functiondef('millrace.read_events'::regproc) as statement`,
    )
    const more = rows[0]!.statement.replace('o_published text)', 'o_published text, o_more text)')
    expect(more).toContain('o_more')
    await inSession.query(
      'drop function millrace.read_events(text, bigint, integer, text[], text[], bigint, integer)',
    )
    await inSession.query(more)
    expect(await work(2)).toHaveLength(7)
  })

  it('stay as they are where the next statement may meet another session: the backend is not the one named', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    try {
      // what a pooler does: a number of its own making
      ;(client as unknown as { processID: number }).processID += 1
      prepareFixed(client)
      for (let n = 0; n < 20; n++) expect(await twice(client, n)).toBe(2 * n)
      expect(await keptHere(client)).toEqual([])
    } finally {
      await client.end()
    }
  })

  it('ask again when they could not, as in a transaction that has failed', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    try {
      prepareFixed(client)
      await client.query('begin')
      await expect(client.query('select 1/0')).rejects.toThrow('division by zero')
      for (let n = 0; n < 6; n++) await expect(twice(client, n)).rejects.toThrow('transaction is aborted')
      await client.query('rollback')
      for (let n = 0; n < 6; n++) expect(await twice(client, n)).toBe(2 * n)
      expect(await keptHere(client)).toEqual(['twice'])
    } finally {
      await client.end()
    }
  })

  it('ask once, and with a callback as without', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const sent: unknown[] = []
    const query = client.query.bind(client) as (...of: unknown[]) => Promise<pg.QueryResult>
    client.query = ((...of: unknown[]) => (sent.push(of[0]), query(...of))) as never
    try {
      prepareFixed(client)
      const send = client.query.bind(client) as unknown as SendWithCallback
      for (let n = 0; n < 10; n++) {
        const text = textOfTwice
        const got = await new Promise<pg.QueryResult>((resolve, reject) => {
          send({ text }, [n], (error, result) => (error ? reject(error) : resolve(result)))
        })
        expect(got.rows).toEqual([{ twice: 2 * n }])
      }
      expect(sent.filter((of) => of === 'select pg_backend_pid() as pid')).toHaveLength(1)
    } finally {
      await client.end()
    }
  })
})

/** As a pool sends it; pg's types know no parameters beside the object. */
type SendWithCallback = (
  config: { text: string },
  values: unknown[],
  callback: (error: Error | null, result: pg.QueryResult) => void,
) => void

const twiceStatement = fixedStatement(() => 'select $1::integer * 2 as twice')
const textOfTwice = twiceStatement({ schema: 'millrace' } as Db, [0]).toQuery({} as never).sql

/** As Drizzle sends it. */
async function twice(client: pg.Client, n: number): Promise<number> {
  const { rows } = await client.query<{ twice: number }>({ text: textOfTwice } as pg.QueryConfig, [n])
  return rows[0]!.twice
}
