import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { listDeadLetters, redriveDeadLetters } from '../../src/queues/dead-letters.ts'
import type { ClaimedMessage, NewMessage } from '../../src/queues/message.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { ackMessages, failMessages, retryMessages, returnMessages } from '../../src/queues/settle-messages.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { messageStates, openDb, passTime, type OpenDb } from './support.ts'

let open: OpenDb
beforeAll(async () => {
  open = await openDb()
})
afterAll(() => open.close())

async function send(queue: string, ...messages: Partial<NewMessage>[]): Promise<number[]> {
  const sent = await sendMessages(
    open.db,
    queue,
    messages.map((message) => Object.assign({ dataText: '1' }, message)),
  )
  return sent.messages.map(({ id }) => id)
}

async function claim(queue: string, limit = 10): Promise<ClaimedMessage[]> {
  return (await claimMessages(open.db, queue, { limit })).messages
}

const ids = (messages: { id: number }[]): number[] => messages.map(({ id }) => id)

describe('messages of one key', () => {
  it('are handed out one at a time, in the order they were sent, also to a batch', async () => {
    const [a1, b1, a2, a3, b2] = await send(
      'batch',
      { key: 'a' },
      { key: 'b' },
      { key: 'a' },
      { key: 'a' },
      { key: 'b' },
    )
    const first = await claim('batch')
    expect(ids(first)).toEqual([a1, b1])
    expect(await claim('batch')).toEqual([])
    await ackMessages(open.db, 'batch', first)
    const second = await claim('batch')
    expect(ids(second)).toEqual([a2, b2])
    await ackMessages(open.db, 'batch', second)
    expect(ids(await claim('batch'))).toEqual([a3])
  })

  it('are in order when each was sent by itself, and others overtake them', async () => {
    const [a1] = await send('single', { key: 'a' })
    const [a2] = await send('single', { key: 'a', priority: -5 })
    const [free] = await send('single', {})
    expect(ids(await claim('single'))).toEqual([a1, free].sort((x, y) => x! - y!))
    expect(await claim('single')).toEqual([])
    expect(await messageStates(open, 'single')).toMatchObject([
      { id: a1 },
      { id: a2, state: 'blocked' },
      { id: free },
    ])
  })

  it('wait for one that is to be tried again, and for one that is delayed', async () => {
    const [a1, a2] = await send('retried', { key: 'a' }, { key: 'a' })
    const [first] = await claim('retried')
    await retryMessages(open.db, 'retried', [{ ...first!, delayMs: 60_000 }])
    expect(await claim('retried')).toEqual([])
    await passTime(open, 'retried', 60_000)
    const again = await claim('retried')
    expect(ids(again)).toEqual([a1])
    await ackMessages(open.db, 'retried', again)
    expect(ids(await claim('retried'))).toEqual([a2])

    const [late, behind] = await send('delayed', { key: 'a', delayMs: 60_000 }, { key: 'a' })
    expect(await claim('delayed')).toEqual([])
    await passTime(open, 'delayed', 60_000)
    const due = await claim('delayed')
    expect(ids(due)).toEqual([late])
    await ackMessages(open.db, 'delayed', due)
    expect(ids(await claim('delayed'))).toEqual([behind])
  })

  it('that are blocked keep their own delay', async () => {
    await send('own-delay', { key: 'a' }, { key: 'a', delayMs: 60_000 })
    await ackMessages(open.db, 'own-delay', await claim('own-delay'))
    const { messages, nextDueMs } = await claimMessages(open.db, 'own-delay', { limit: 1 })
    expect(messages).toEqual([])
    expect(nextDueMs).toBeGreaterThan(50_000)
  })

  it.each([
    [
      'was given up',
      (message: ClaimedMessage) => failMessages(open.db, 'dies', [{ ...message, reason: 'no' }]),
    ],
    ['failed its last attempt', (message: ClaimedMessage) => retryMessages(open.db, 'dies', [message])],
    ['was swept after its last lease', () => passTime(open, 'dies', 60_000).then(() => sweepQueues(open.db))],
    ['ran out of its last lease before the next claim', () => passTime(open, 'dies', 60_000)],
  ])('go on after one %s (Q2)', async (_, end) => {
    const [dead, next] = await send('dies', { key: 'a', maxAttempts: 1 }, { key: 'a' })
    const [first] = await claim('dies')
    await end(first!)
    const second = await claim('dies')
    expect(ids(second)).toEqual([next])
    const letters = await listDeadLetters(open.db, 'dies')
    expect(letters.at(-1)).toMatchObject({ id: dead, key: 'a', attempts: 1 })
    expect(letters.at(-1)!.reason).toMatch(/^(no|attempt 1 of 1 failed|the lease of attempt 1 of 1 ran out)$/)
    await ackMessages(open.db, 'dies', second)
  })

  it('are given back in their place', async () => {
    const [a1] = await send('returned', { key: 'a' }, { key: 'a' })
    await returnMessages(open.db, 'returned', await claim('returned'))
    const again = await claim('returned')
    expect(again).toMatchObject([{ id: a1, attempt: 1 }])
  })

  it('are not held up by a redriven one for ever, nor overtaken by it while one is leased', async () => {
    const [a1, a2, a3] = await send('redriven', { key: 'a' }, { key: 'a' }, { key: 'a' })
    await failMessages(open.db, 'redriven', [{ ...(await claim('redriven'))[0]!, reason: 'no' }])
    const leased = await claim('redriven')
    expect(ids(leased)).toEqual([a2])
    expect(await redriveDeadLetters(open.db, 'redriven')).toEqual([a1])
    expect(await claim('redriven')).toEqual([])
    // a2 goes back behind a1, which was parked: it must come out although a2 is the one that was settled
    await retryMessages(open.db, 'redriven', [{ ...leased[0]!, delayMs: 0 }])
    for (const id of [a1, a2, a3]) {
      const next = await claim('redriven')
      expect(ids(next)).toEqual([id])
      await ackMessages(open.db, 'redriven', next)
    }
  })

  it('cost the others nothing: two thousand of a busy key stand before one that is free', async () => {
    for (let batch = 0; batch < 20; batch++) {
      await open.pool.query(`select millrace.send_messages('busy', array_fill('1'::text, array[100]), null,
        array(select 'k' || (i % 2) from generate_series(1, 100) i), null, null, null, null,
        array_fill(10::bigint, array[100]), array_fill(60000::bigint, array[100]), array_fill(0::bigint, array[100]),
        array_fill(0::bigint, array[100]), array_fill(1::float8, array[100]), null, null)`)
    }
    // as if each had been sent by itself
    await open.pool.query(`update millrace.messages m set state = 'ready' from millrace.queues q
      where q.id = m.queue_id and q.name = 'busy'`)
    const [free] = await send('busy', {})
    expect(ids(await claim('busy', 3)).at(-1)).toBe(free)
    const states = await messageStates(open, 'busy')
    expect(states.filter(({ state }) => state === 'blocked')).toHaveLength(1998)
  })

  it('are left alone by claims while one is being settled, and go on once it is', async () => {
    const queue = 'settling'
    await send(queue, { key: 'a' })
    const first = await claim(queue)
    const [next] = await send(queue, { key: 'a' })
    await open.db.transaction(async ({ drizzle: tx }) => {
      await ackMessages(open.db, queue, first, { tx })
      const meanwhile = await claimMessages(open.db, queue)
      // parked now, it would be parked for good: the settle has already looked for whom to let out
      expect(meanwhile).toEqual({ messages: [], nextDueMs: 1000 })
    })
    expect(ids(await claim(queue))).toEqual([next])
  })

  it('that are settled above READ COMMITTED are refused, for it would strand those behind', async () => {
    await send('isolated', { key: 'a' }, { key: 'a' })
    const [first] = await claim('isolated')
    const settled = open.db.drizzle.transaction((tx) => ackMessages(open.db, 'isolated', [first!], { tx }), {
      isolationLevel: 'repeatable read',
    })
    await expect(settled).rejects.toMatchObject({ code: 'ISOLATION_LEVEL' })
  })
})

describe('many workers on few keys', () => {
  it('never have two of a key at a time, and lose none, while more are sent and some die', async () => {
    const queue = 'crowd'
    const inHand = new Set<string>()
    const order = new Map<string, number[]>()
    const expected = 300
    let settled = 0
    async function producer(key: string): Promise<void> {
      for (let sent = 0; sent < 50; sent++) await send(queue, { key, maxAttempts: 2 })
    }
    async function work(message: ClaimedMessage): Promise<void> {
      const key = message.key!
      expect(inHand.has(key)).toBe(false)
      inHand.add(key)
      order.set(key, [...(order.get(key) ?? []), message.id])
      // free for the model before it is free in the database
      inHand.delete(key)
      const again = message.id % 7 === 0
      if (again) {
        const [outcome] = await retryMessages(open.db, queue, [{ ...message, delayMs: 0 }])
        if (outcome === 'dead') settled++
      } else {
        await ackMessages(open.db, queue, [message])
        settled++
      }
    }
    async function worker(): Promise<void> {
      while (settled < expected) for (const message of await claim(queue, 4)) await work(message)
    }
    const keys = Array.from({ length: 6 }, (_, i) => `key-${i}`)
    await Promise.all([...keys.map(producer), worker(), worker(), worker(), worker()])
    expect(await messageStates(open, queue)).toEqual([])
    for (const seen of order.values()) expect(seen).toEqual(seen.toSorted((a, b) => a - b))
  }, 60_000)

  it('see one that was committed late only when the one that overtook it is settled', async () => {
    const queue = 'late'
    await send(queue, {})
    const client = await open.pool.connect()
    await client.query('begin')
    await client.query(`select millrace.send_messages('late', '{1}', null, '{a}', null, null, null, null,
      '{10}', '{60000}', '{0}', '{0}', '{1}', null, null)`)
    const [overtaking] = await send(queue, { key: 'a' })
    const first = await claim(queue)
    expect(ids(first)).toContain(overtaking)
    await client.query('commit')
    client.release()
    expect(await claim(queue)).toEqual([])
    await ackMessages(open.db, queue, first)
    expect(await claim(queue)).toMatchObject([{ key: 'a', id: overtaking! - 1 }])
  })
})
