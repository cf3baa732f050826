import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openMigratedSession } from '../support/migrated.ts'
import { rowsTouched } from '../support/rows-touched.ts'

const read = 'select * from millrace.read_events($1, $2, 100, null, null, 1000000, 1000)'
const search = `select millrace.offset_at(id, now()) from millrace.streams where name = $1`
const trim = 'select millrace.trim_events($1, 500, 100) as n'

describe('a stream', () => {
  let client: pg.Client
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ client, close } = await openMigratedSession())
    await client.query(
      `select from millrace.append('orders', array_fill('t'::text, '{20000}'), array_fill(null::text, '{20000}'),
        array_fill('1'::text, '{20000}'), array_fill(null::text, '{20000}'), null, null)`,
    )
    await client.query('vacuum analyze millrace.events')
    // to this planner looking into an index is worse than reading all of the table and sorting it
    await client.query('set random_page_cost = 100000')
  })
  afterAll(() => close())

  it('is read without a look at events beyond the page, whatever the planner makes of the rest', async () => {
    const page = await rowsTouched(client, ['events'], async () => {
      expect((await client.query(read, ['orders', 50])).rows).toHaveLength(101)
    })
    // once to size them up, once to read them
    expect(page).toEqual({ rows: 200, scans: 0 })
  })

  it('is searched for a time in a few steps', async () => {
    const found = await rowsTouched(client, ['events'], async () => {
      await client.query(search, ['orders'])
    })
    expect(found.scans).toBe(0)
    expect(found.rows).toBeLessThan(30)
  })

  it('is trimmed without a look at what stays (S4)', async () => {
    const trimmed = await rowsTouched(client, ['events'], async () => {
      const { rows } = await client.query<{ n: string }>(trim, ['orders'])
      expect(rows).toEqual([{ n: '100' }])
    })
    // once to lock them, once to delete them
    expect(trimmed).toEqual({ rows: 200, scans: 0 })
  })
})
