import { afterAll, beforeAll, expect, it } from 'vitest'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { workQueue } from '../../src/queues/work/work-queue.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { openDb, type OpenDb } from './support.ts'

const long = process.env.MILLRACE_LONG_TESTS === '1'
const finished = long ? 500_000 : 100_000
const waiting = long ? 20_000 : 4_000

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

/** Fills the table behind the functions' back, as if so many had been sent, and worked on, before. */
async function fill(state: string, count: number): Promise<void> {
  await open.pool.query(
    `insert into millrace.messages (queue_id, state, due_at, priority, attempts, max_attempts, lease_ms,
        backoff_base_ms, backoff_max_ms, backoff_factor, sent_at, data)
      select millrace.ensure_queue('busy'), $1, case when $1 = 'done' then now() + interval '1 day' end,
        0, 0, 10, 30000, 1000, 1000, 2, now(), '1' from generate_series(1, $2::int) i`,
    [state, count],
  )
}

async function count(state: string): Promise<number> {
  const { rows } = await open.pool.query<{ n: number }>(
    `select count(*)::integer as n from millrace.messages where state = $1`,
    [state],
  )
  return rows[0]!.n
}

it(`${waiting} waiting beside ${finished} finished ones shrink though others keep coming (Q2)`, async () => {
  await fill('done', finished)
  await fill('ready', waiting)
  await open.pool.query(`update millrace.queues set retain_finished_ms = 86400000 where name = 'busy'`)
  let sent = 0
  let stop = false
  const sending = (async () => {
    while (!stop) {
      await sendMessages(open.db, 'busy', [{ dataText: '2' }, { dataText: '2' }])
      sent += 2
    }
  })()
  const worker = workQueue(open.db, 'busy', async () => {}, { ports: createSystemPorts(), concurrency: 10 })
  try {
    await expect.poll(() => count('ready'), { timeout: 60_000, interval: 100 }).toBeLessThan(50)
    expect(sent).toBeGreaterThan(0)
  } finally {
    stop = true
    await sending
  }
  await expect.poll(() => count('done'), { timeout: 30_000 }).toBe(finished + waiting + sent)
  await worker.stop()
}, 150_000)
