import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { listDeadLetters } from '../../src/queues/dead-letters.ts'
import { configureQueue } from '../../src/queues/queue-settings.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { ackMessages, extendMessages } from '../../src/queues/settle-messages.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { messageStates, openDb, passTime, type OpenDb } from './support.ts'

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

const many = (count: number, message = {}) =>
  Array.from({ length: count }, () => ({ dataText: '1', ...message }))

describe('the sweep and an ack', () => {
  it('at the same time: what was answered as done stays done, the rest is swept (Q1, Q2)', async () => {
    await configureQueue(open.db, 'kept', { retainFinishedMs: 3_600_000 })
    for (const queue of ['kept', 'gone']) {
      await sendMessages(open.db, queue, many(200, { maxAttempts: 1 }))
      const { messages } = await claimMessages(open.db, queue, { limit: 200 })
      await passTime(open, queue, 60_000)
      const acks = messages.map((message) => ackMessages(open.db, queue, [message]))
      const sweeps = Array.from({ length: 6 }, () => sweepQueues(open.db, { limit: 40 }))
      const held = (await Promise.all(acks)).flat()
      await Promise.all(sweeps)
      const dead = new Set((await listDeadLetters(open.db, queue, { limit: 1000 })).map(({ id }) => id))
      const done = messages.filter((_, index) => held[index])
      expect(done.filter(({ id }) => dead.has(id))).toEqual([])
      expect(done.length + dead.size).toBe(200)
      const left = await messageStates(open, queue)
      expect(left.map(({ state }) => state)).toEqual(queue === 'kept' ? done.map(() => 'done') : [])
    }
  })

  it('that is not committed yet: the sweep passes by, and the rollback leaves it to the next', async () => {
    await sendMessages(open.db, 'open', many(1))
    const { messages } = await claimMessages(open.db, 'open')
    await passTime(open, 'open', 60_000)
    const undone = open.db.transaction(async ({ drizzle: tx }) => {
      expect(await ackMessages(open.db, 'open', messages, { tx })).toEqual([true])
      expect(await sweepQueues(open.db)).toMatchObject({ released: 0, died: 0 })
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect(await sweepQueues(open.db)).toMatchObject({ released: 1 })
    expect(await ackMessages(open.db, 'open', messages)).toEqual([false])
  })

  it('in a transaction that stays open: the heartbeat of the others does not wait for it', async () => {
    await sendMessages(open.db, 'beat', many(2))
    const { messages } = await claimMessages(open.db, 'beat', { limit: 2, leaseMs: 1000 })
    await open.db.transaction(async ({ drizzle: tx }) => {
      await ackMessages(open.db, 'beat', [messages[0]!], { tx })
      expect(await extendMessages(open.db, 'beat', messages, { leaseMs: 600_000 })).toEqual([true, true])
    })
    expect(await extendMessages(open.db, 'beat', messages)).toEqual([false, true])
    expect((await claimMessages(open.db, 'beat')).nextDueMs).toBeGreaterThan(500_000)
  })
})

describe('many claims at once', () => {
  it('hand out each message once (Q1)', async () => {
    await sendMessages(open.db, 'once', many(500))
    const claims = Array.from({ length: 100 }, () => claimMessages(open.db, 'once', { limit: 5 }))
    const seen = (await Promise.all(claims)).flatMap(({ messages }) => messages.map(({ id }) => id))
    const rest = await claimMessages(open.db, 'once', { limit: 500 })
    const all = [...seen, ...rest.messages.map(({ id }) => id)]
    expect(new Set(all).size).toBe(500)
    expect(all).toHaveLength(500)
  })

  it('take back an expired lease once, with a new token', async () => {
    await sendMessages(open.db, 'expired', many(20))
    const first = await claimMessages(open.db, 'expired', { limit: 20 })
    await passTime(open, 'expired', 60_000)
    const again = await Promise.all(
      Array.from({ length: 10 }, () => claimMessages(open.db, 'expired', { limit: 20 })),
    )
    const taken = again.flatMap(({ messages }) => messages)
    const late = await claimMessages(open.db, 'expired', { limit: 20 })
    const all = [...taken, ...late.messages]
    expect(all.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(first.messages.map(({ id }) => id))
    expect(all.every(({ attempt }) => attempt === 2)).toBe(true)
    expect(await ackMessages(open.db, 'expired', first.messages)).toEqual(first.messages.map(() => false))
    expect(await ackMessages(open.db, 'expired', all)).toEqual(all.map(() => true))
  })
})

describe('an extend', () => {
  it('never shortens a lease', async () => {
    await sendMessages(open.db, 'shorter', many(1, { leaseMs: 600_000 }))
    const { messages } = await claimMessages(open.db, 'shorter')
    expect(await extendMessages(open.db, 'shorter', messages, { leaseMs: 1 })).toEqual([true])
    expect((await claimMessages(open.db, 'shorter')).nextDueMs).toBeGreaterThan(500_000)
  })
})

describe('a connection that dies', () => {
  it('on the last attempt leaves a dead message with a reason, and a key that goes on (Q2)', async () => {
    await sendMessages(open.db, 'crash', many(2, { key: 'k', maxAttempts: 1, leaseMs: 60_000 }))
    const client = await open.pool.connect()
    const lost = new Promise((resolve) => client.once('error', resolve))
    const { rows } = await client.query<{ pid: number; o_id: string }>(
      `select pg_backend_pid() as pid, o_id from millrace.claim_messages('crash', 1, null, null)`,
    )
    await client.query('begin')
    await client.query(`select millrace.ack_messages('crash', array[$1::bigint], array[null::uuid])`, [
      rows[0]!.o_id,
    ])
    await open.pool.query('select pg_terminate_backend($1)', [rows[0]!.pid])
    await lost
    client.release(true)
    expect((await claimMessages(open.db, 'crash')).messages).toEqual([])
    await passTime(open, 'crash', 60_000)
    const next = await claimMessages(open.db, 'crash')
    expect(next.messages).toMatchObject([{ key: 'k', attempt: 1 }])
    expect(next.messages[0]!.id).toBeGreaterThan(Number(rows[0]!.o_id))
    expect(await listDeadLetters(open.db, 'crash')).toMatchObject([
      { id: Number(rows[0]!.o_id), reason: 'the lease of attempt 1 of 1 ran out' },
    ])
  })
})
