import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rowsTouched, type RowsTouched } from '../support/rows-touched.ts'
import { openDb, type OpenDb } from './support.ts'

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

/** Fills the table behind the functions' back: a hundred thousand by send would take its time. */
async function fill(queue: string, state: string, count: number): Promise<void> {
  await open.pool.query(
    `insert into millrace.messages (queue_id, state, due_at, priority, attempts, max_attempts, lease_ms,
        backoff_base_ms, backoff_max_ms, backoff_factor, sent_at, data)
      select millrace.ensure_queue($1), $2, case when $2 in ('done', 'delayed') then now() + interval '1 day' end,
        i % 3, 0, 10, 30000, 1000, 1000, 2, now(), '1' from generate_series(1, $3::int) i`,
    [queue, state, count],
  )
}

/** Each gets a part of what was claimed. */
const settles = [
  'ack_messages($1, $2, $3)',
  'retry_messages($1, $2, $3, null, null)',
  'return_messages($1, $2, $3)',
  'extend_messages($1, $2, $3, null)',
  `fail_messages($1, $2, $3, '{no}')`,
]

/** How many rows of the messages a claim and its settles looked at, in one transaction and session. */
async function touchedBy(queue: string, limit: number): Promise<RowsTouched> {
  const client = await open.pool.connect()
  try {
    return await rowsTouched(client, ['messages'], async () => {
      const { rows } = await client.query<{ o_id: string; o_lease: string }>(
        'select o_id, o_lease from millrace.claim_messages($1, $2, null, null) where o_id is not null',
        [queue, limit],
      )
      expect(rows).toHaveLength(limit)
      const leases = rows.map((row) => [row.o_id, row.o_lease])
      for (const [index, call] of settles.entries()) {
        const part = leases.filter((_, at) => at % settles.length === index)
        await client.query(`select millrace.${call}`, [
          queue,
          part.map(([id]) => id),
          part.map(([, lease]) => lease),
        ])
      }
    })
  } finally {
    client.release()
  }
}

describe('a claim', () => {
  it('reads its rows from the partial index, in the order of the index', async () => {
    await fill('explained', 'ready', 20_000)
    await open.pool.query('analyze millrace.messages')
    const { rows } = await open.pool.query<{ 'QUERY PLAN': string }>(
      `explain select m.id, m.key from millrace.messages m
        where m.queue_id = (select id from millrace.queues where name = 'explained') and m.state = 'ready'
        order by m.priority, m.id limit 10 for update skip locked`,
    )
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('Index Scan using messages_ready')
    expect(plan).not.toContain('Sort')
  })

  it('and its settles look at as many rows with 100000 waiting and finished ones as with ten', async () => {
    await fill('small', 'ready', 10)
    // the session keeps the plan it made while the table was small and unknown to the planner
    const few = await touchedBy('small', 10)
    await fill('big', 'ready', 100_000)
    await fill('big', 'done', 50_000)
    await fill('big', 'delayed', 50_000)
    const many = await touchedBy('big', 10)
    await open.pool.query('analyze millrace.messages')
    const analyzed = await touchedBy('big', 10)
    for (const { rows, scans } of [many, analyzed]) {
      expect(scans).toBe(0)
      // what was rolled back before is still stepped over: some dozens, not thousands
      expect(rows).toBeLessThanOrEqual(few.rows + 100)
    }
  })
})
