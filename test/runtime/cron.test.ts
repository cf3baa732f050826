import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { getQueueStats } from '../../src/queues/queue-stats.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { configureQueue } from '../../src/queues/queue-settings.ts'
import { ackMessages } from '../../src/queues/settle-messages.ts'
import { putSchedule } from '../../src/schedules/put-schedule.ts'
import { configureStream } from '../../src/streams/configure-stream.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { countServerStatements } from '../support/server-statements.ts'
import type { MeasuredInvocation } from './support/measure.ts'
import { startSite, type Site } from './support/site.ts'

const within = { timeout: 60_000, interval: 50 }

let receiver: Receiver
let edge: Site
beforeAll(async () => {
  receiver = await startReceiver()
  edge = await startSite()
}, 60_000)
afterAll(async () => {
  await edge.close()
  await receiver.close()
})

/** Runs the cron handler once. */
async function cron(): Promise<MeasuredInvocation> {
  await edge.workerd.cron()
  return (await edge.settled()).at(-1)!
}

const every = async (condition: () => Promise<void>): Promise<void> => {
  await vi.waitFor(condition, within)
}

describe('a cron run at the edge', () => {
  it('makes one statement when nothing is due, whatever waits for its time', async () => {
    await edge.call('POST', '/v1/webhooks', { stream: 'orders', url: `${receiver.url}/hook` })
    await configureStream(edge.db, 'kept', { ageMs: 3_600_000 })
    await sendMessages(edge.db, 'jobs', [{ dataText: '1', delayMs: 3_600_000 }, { dataText: '2' }])
    const target = { kind: 'queue', name: 'jobs' } as const
    await putSchedule(edge.db, 'yearly', { target, cron: '0 0 1 1 *', dataText: '1' })
    const counted = await countServerStatements(edge.databaseUrl)
    await counted?.reset()
    expect(await cron()).toMatchObject({ kind: 'scheduled', total: 1, refused: 0 })
    const atServer = (await counted?.read())?.filter(({ query }) => !/^discard all/i.test(query))
    if (atServer !== undefined) expect(atServer).toMatchObject([{ calls: 1 }])
  })

  it('Q5 W1: fires what is due, and delivers in the same run what that published', async () => {
    const target = { kind: 'stream', name: 'orders' } as const
    await putSchedule(edge.db, 'soon', { target, everyMs: 100, type: 'tick', dataText: '{"n":7}' })
    await every(async () => {
      await cron()
      expect(receiver.requests.length).toBeGreaterThan(0)
    })
    await edge.call('POST', '/v1/schedules/soon/pause')
    expect(JSON.parse(String(receiver.requests[0]?.body))).toMatchObject({ type: 'tick', data: { n: 7 } })
  })

  it('Q2: ends leases that ran out and removes what is finished, in queues that nobody claims from', async () => {
    await sendMessages(edge.db, 'stranded', [{ dataText: '1', maxAttempts: 1 }])
    await claimMessages(edge.db, 'stranded', { leaseMs: 1 })
    await configureQueue(edge.db, 'finished', { retainFinishedMs: 1 })
    await sendMessages(edge.db, 'finished', [{ dataText: '1' }])
    await ackMessages(edge.db, 'finished', (await claimMessages(edge.db, 'finished')).messages)
    await every(async () => {
      await cron()
      expect(await getQueueStats(edge.db, 'stranded')).toMatchObject({ leased: 0, dead: 1 })
      expect(await getQueueStats(edge.db, 'finished')).toMatchObject({ done: 0 })
    })
  })

  it('removes old events, attempts and locks, as much as its requests allow', async () => {
    const { attempts, locks } = edge.db.tables
    for (let n = 0; n < 30; n++) {
      await configureStream(edge.db, `old-${n}`, { count: 1 })
      await publishEvents(
        edge.db,
        `old-${n}`,
        [1, 2, 3].map((data) => ({ type: 'made', dataText: `${data}` })),
      )
    }
    await runQuery(
      edge.db,
      sql`insert into ${locks} (name, fence, until) values ('gone', 1, now() - interval '2 days')`,
    )
    await runQuery(
      edge.db,
      sql`insert into ${attempts} (webhook_id, "offset", attempt, at, duration_ms, outcome)
        select w.id, 1, 1, now() - interval '31 days', 1, 'retry' from ${edge.db.tables.webhooks} w`,
    )
    const runs: MeasuredInvocation[] = []
    await every(async () => {
      runs.push(await cron())
      for (const n of [0, 29]) {
        const { events } = await readEvents(edge.db, `old-${n}`, { after: 0, limit: 10 })
        expect(events.map(({ dataText }) => dataText)).toEqual(['3'])
      }
      const left = await runQuery(
        edge.db,
        sql`select 1 from ${attempts} union all select 1 from ${locks}
        where name = 'gone'`,
      )
      expect(left).toEqual([])
    })
    for (const run of runs) expect(run).toMatchObject({ refused: 0 })
    expect(Math.max(...runs.map(({ total }) => total))).toBeLessThanOrEqual(50)
    await every(async () => expect(await cron()).toMatchObject({ total: 1 }))
  }, 90_000)
})

it('Q1: a function at the edge claims, works and settles in two round trips', async () => {
  await edge.call('POST', '/v1/queues/work/messages', [{ data: 'a' }, { data: 'b' }])
  const counted = await countServerStatements(edge.databaseUrl)
  await counted?.reset()
  const before = (await edge.settled()).length
  const claimed = await edge.call('POST', '/v1/queues/work/claim', { limit: 10 })
  const messages = claimed.messages as { id: number; lease: string; data: string }[]
  expect(messages.map(({ data }) => data)).toEqual(['a', 'b'])
  await edge.call(
    'POST',
    '/v1/queues/work/ack',
    messages.map(({ id, lease }) => ({ id, lease })),
  )
  const made = (await edge.settled()).slice(before)
  expect(made.map((invocation) => [edge.statements(invocation), invocation.total])).toEqual([
    [1, 1],
    [1, 1],
  ])
  const atServer = (await counted?.read())?.filter(({ query }) => !/^discard all/i.test(query))
  if (atServer !== undefined)
    expect(atServer.map(({ query, calls }) => [/(\w+)"?\(/.exec(query)?.[1], calls])).toEqual([
      ['ack_messages', 1],
      ['claim_messages', 1],
    ])
  expect(await getQueueStats(edge.db, 'work')).toMatchObject({ ready: 0, leased: 0 })
})
