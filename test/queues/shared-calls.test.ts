import { describe, expect, it } from 'vitest'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { createSharedAck, createSharedClaim, createSharedClaims } from '../../src/queues/shared-calls.ts'
import { spyOn } from './spied-db.ts'
import { openForSharing } from './support.ts'

describe('claims and acks of many callers', () => {
  const given = openForSharing()

  const messages = (count: number) => Array.from({ length: count }, (_, n) => ({ dataText: String(n) }))

  it('Q1: each message goes to one of them, in order, in few statements', async () => {
    await sendMessages(given().db, 'many', messages(25))
    const spied = spyOn(given().db)
    const claim = createSharedClaim(spied.db, 'many')
    const claimed = await Promise.all(Array.from({ length: 20 }, () => claim({ limit: 2 })))
    const taken = claimed.flatMap(({ messages }) => messages)
    expect(taken.map(({ dataText }) => Number(dataText))).toEqual(Array.from({ length: 25 }, (_, n) => n))
    expect(claimed.map(({ messages }) => messages.length).slice(11)).toEqual([2, 1, 0, 0, 0, 0, 0, 0, 0])
    expect(claimed[0]!.nextDueMs).toBe(0)
    // what waits now is the end of the first lease
    for (const { nextDueMs } of claimed.slice(12)) expect(nextDueMs).toBeGreaterThan(0)
    expect(spied.calls('claim_messages')).toBe(2)

    const ack = createSharedAck(spied.db, 'many')
    const stale = { id: taken[0]!.id, lease: crypto.randomUUID() }
    const held = await Promise.all([...taken.map((message) => ack([message])), ack([stale]), ack([])])
    expect(held).toEqual([...taken.map(() => [true]), [false], []])
    expect(spied.calls('ack_messages')).toBe(2)
  })

  it('Q1: those of any queue, over HTTP say, share the statements of their own', async () => {
    await sendMessages(given().db, 'one', messages(5))
    await sendMessages(given().db, 'two', messages(2))
    const spied = spyOn(given().db)
    const claim = createSharedClaims(spied.db)
    const of = (queue: string) => Promise.all(Array.from({ length: 6 }, () => claim(queue)))
    const counts = (await Promise.all([of('one'), of('two')])).map((claims) =>
      claims.map((claimed) => claimed.messages.length),
    )
    expect(counts).toEqual([
      [1, 1, 1, 1, 1, 0],
      [1, 1, 0, 0, 0, 0],
    ])
    expect(spied.calls('claim_messages')).toBe(4)
  })

  it('claims for other types or leases do not go together', async () => {
    await sendMessages(
      given().db,
      'typed',
      ['a', 'b', 'a', 'b'].map((type) => ({ dataText: '0', type })),
    )
    const claim = createSharedClaim(given().db, 'typed')
    const claimed = await Promise.all([
      claim({ types: ['a'] }),
      claim({ types: ['b'], leaseMs: 5000 }),
      claim({ types: ['a'] }),
      claim({ types: ['b'], leaseMs: 9000 }),
    ])
    const kinds = claimed.map(({ messages }) => messages.map(({ type, leaseMs }) => [type, leaseMs]))
    expect(kinds).toEqual([[['a', 30_000]], [['b', 5000]], [['a', 30_000]], [['b', 9000]]])
  })

  it('what is wrong with one call fails that one alone', async () => {
    await sendMessages(given().db, 'wrong', messages(1))
    const claim = createSharedClaim(given().db, 'wrong')
    const ack = createSharedAck(given().db, 'wrong')
    const [good, bad] = await Promise.allSettled([claim(), claim({ leaseMs: -1 })])
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'INVALID_INPUT' } })
    if (good.status === 'rejected') throw good.reason
    const outcomes = await Promise.allSettled([
      ack([]),
      ack([{ id: -1, lease: '' }]),
      ack(good.value.messages),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await claim({ limit: 0 })).toEqual({ messages: [], nextDueMs: 0 })
  })

  it('Q3: an ack in a transaction belongs to that transaction', async () => {
    await sendMessages(given().db, 'tx', messages(1))
    const [message] = (await createSharedClaim(given().db, 'tx')()).messages
    const ack = createSharedAck(given().db, 'tx')
    const undone = given().db.transaction(async ({ drizzle }) => {
      expect(await ack([message!], { tx: drizzle })).toEqual([true])
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect(await ack([message!])).toEqual([true])
  })
})
