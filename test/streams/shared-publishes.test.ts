import { describe, expect, it } from 'vitest'
import type { Db } from '../../src/db/port.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { createSharedAck, createSharedClaim } from '../../src/queues/shared-calls.ts'
import { publishEvents } from '../../src/streams/publish-events.ts'
import { readEvents } from '../../src/streams/read-events.ts'
import { spyOn } from '../queues/spied-db.ts'
import { openForSharing } from '../queues/support.ts'

const event = (data: unknown) => ({
  type: 'made',
  key: `k"${String(data)}\\`,
  dataText: JSON.stringify(data),
})

describe('publishes that are under way at once', () => {
  const given = openForSharing()

  it('S1: share statements, each with its own offsets, all events there once and in order', async () => {
    const { db, calls } = spyOn(given().db)
    const published = await Promise.all(
      Array.from({ length: 40 }, (_, n) => publishEvents(db, 'many', [event(n), event(`${n}b`)])),
    )
    const { events } = await readEvents(given().db, 'many', { limit: 1000 })
    const dataAt = new Map(events.map(({ offset, dataText }) => [offset, JSON.parse(dataText) as unknown]))
    expect(dataAt.size).toBe(80)
    for (const [n, { offsets, replayed }] of published.entries()) {
      expect(offsets.map((offset) => dataAt.get(offset))).toEqual([n, `${n}b`])
      expect(replayed).toBe(false)
    }
    // the first goes at once, the others with the next
    expect(calls('publish')).toBe(2)
  })

  it('go by themselves with an idempotency key, in a transaction, or when they are large', async () => {
    const { db, calls } = spyOn(given().db)
    const large = { type: 'made', dataText: JSON.stringify('x'.repeat(20_000)) }
    await Promise.all([
      publishEvents(db, 'alone', [event(1)], { idempotencyKey: 'a' }),
      publishEvents(db, 'alone', [event(1)], { idempotencyKey: 'a' }),
      publishEvents(db, 'alone', [large]),
      publishEvents(db, 'alone', [large]),
      publishEvents(
        db,
        'alone',
        Array.from({ length: 101 }, () => event(2)),
      ),
      publishEvents(db, 'alone', []),
    ])
    expect(calls('publish')).toBe(6)
    await given().db.transaction(async ({ drizzle }) => {
      await publishEvents(db, 'alone', [event(3)], { tx: drizzle })
    })
    expect(calls('publish')).toBe(6)
    const { events } = await readEvents(given().db, 'alone', { limit: 1000 })
    expect(events).toHaveLength(1 + 2 + 101 + 1)
  })

  it('what Postgres refuses of one fails that one alone, and nothing of it is stored', async () => {
    await given().pool.query(`alter table millrace.events add constraint nothing_odd check (type <> 'odd')`)
    const odd = { type: 'odd', dataText: '0' }
    const outcomes = await Promise.allSettled([
      publishEvents(given().db, 'mixed', [event(0)]),
      publishEvents(given().db, 'mixed', [event(1)]),
      publishEvents(given().db, 'mixed', [event('with an odd one'), odd]),
      publishEvents(given().db, 'mixed', [event(2)]),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[2]).toMatchObject({
      reason: { details: { sqlState: '23514', constraint: 'nothing_odd' } },
    })
    const { events } = await readEvents(given().db, 'mixed', {})
    expect(events.map(({ dataText }) => dataText)).toEqual(['0', '1', '2'])
  })

  it('share nothing on a driver that speaks HTTP', async () => {
    const { db, calls } = spyOn(given().db)
    const overHttp = Object.assign(Object.create(db) as Db, {
      capabilities: { interactiveTx: false, listen: false, sessionLocks: false },
    })
    await Promise.all([1, 2, 3, 4].map((n) => publishEvents(overHttp, 'http', [event(n)])))
    expect(calls('publish')).toBe(4)
    await sendMessages(overHttp, 'http', [{ dataText: '1' }, { dataText: '2' }])
    const claim = createSharedClaim(overHttp, 'http')
    const claimed = await Promise.all([claim(), claim(), claim()])
    expect(calls('claim_messages')).toBe(3)
    const ack = createSharedAck(overHttp, 'http')
    const messages = claimed.flatMap((one) => one.messages)
    expect(await Promise.all(messages.map((message) => ack([message])))).toEqual([[true], [true]])
    expect(calls('ack_messages')).toBe(2)
  })
})
