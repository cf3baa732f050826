import { sql } from 'drizzle-orm'
import { expect, it, vi } from 'vitest'
import { runQuery } from '../../src/db/run.ts'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { listDeadLetters, purgeDeadLetters, redriveDeadLetters } from '../../src/queues/dead-letters.ts'
import type { NewMessage } from '../../src/queues/message.ts'
import { configureQueue, ensureQueue } from '../../src/queues/queue-settings.ts'
import { getQueueStats, listQueues } from '../../src/queues/queue-stats.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import {
  ackMessages,
  extendMessages,
  failMessages,
  retryMessages,
  returnMessages,
} from '../../src/queues/settle-messages.ts'
import { sweepQueues } from '../../src/queues/sweep-queues.ts'
import { bindQueue, listBindings, publishToTopic, unbindQueue } from '../../src/queues/topics.ts'
import { workQueue } from '../../src/queues/work/work-queue.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { describeOnEveryDriver } from '../contract/drivers.ts'

/** As passTime in support.ts, on whatever driver. */
async function passTime(db: Parameters<typeof runQuery>[0], ms: number): Promise<void> {
  const { messages, dedupeKeys } = db.tables
  await runQuery(db, sql`update ${messages} set due_at = due_at - ${ms}::bigint * interval '1 ms'`)
  await runQuery(db, sql`update ${dedupeKeys} set expires_at = expires_at - ${ms}::bigint * interval '1 ms'`)
}

const message = (dataText: string, more: Partial<NewMessage> = {}): NewMessage => ({ dataText, ...more })

describeOnEveryDriver('queues', (given) => {
  const send = (queue: string, ...messages: NewMessage[]) => sendMessages(given().db, queue, messages)
  const claim = async (queue: string, options = {}) =>
    (await claimMessages(given().db, queue, { limit: 10, ...options })).messages

  it('hand out what was sent, byte for byte, by priority and then in order', async () => {
    const dataText = '{"b":1, "a":1.10,"b":"\\u0000é\u{1f600}"}'
    const headers = { trace: 'x,"y"\\{}', empty: '' }
    const { messages, queueId } = await send(
      'sent',
      message('1', { priority: 5 }),
      message(` ${dataText}\n`, { type: 'a,b', key: 'k"{}', headers, maxAttempts: 3, leaseMs: 5000 }),
      message('3', { priority: -5 }),
    )
    expect(messages.every(({ duplicate }) => !duplicate)).toBe(true)
    const claimed = await claim('sent')
    const order = [messages[2]!.id, messages[1]!.id, messages[0]!.id]
    expect(claimed.map(({ id }) => id)).toEqual(order)
    expect(claimed[1]).toEqual({
      id: order[1],
      lease: expect.stringMatching(/^[0-9a-f-]{36}$/),
      attempt: 1,
      maxAttempts: 3,
      leaseMs: 5000,
      priority: 0,
      type: 'a,b',
      key: 'k"{}',
      dataText,
      headers,
      sentAt: expect.any(Date),
      lastError: null,
    })
    expect(Math.abs(claimed[1]!.sentAt.getTime() - Date.now())).toBeLessThan(60_000)
    expect(await ensureQueue(given().db, 'sent')).toBe(queueId)
  })

  it('say when the next message is due, and hand it out then', async () => {
    const at = new Date(Date.now() + 3_600_000)
    await send(
      'late',
      message('1', { delayMs: 60_000 }),
      message('2', { at }),
      message('0', { at: new Date(0) }),
    )
    expect((await claim('late')).map(({ dataText }) => dataText)).toEqual(['0'])
    const early = await claimMessages(given().db, 'late')
    expect(early.messages).toEqual([])
    expect(early.nextDueMs).toBeGreaterThan(20_000)
    expect(early.nextDueMs).toBeLessThanOrEqual(30_000)
    await passTime(given().db, 60_000)
    const due = await claim('late')
    const attempts = new Map(due.map(({ dataText, attempt }) => [dataText, attempt]))
    expect(attempts).toEqual(
      new Map([
        ['1', 1],
        ['0', 2],
      ]),
    )
    expect(await claimMessages(given().db, 'nowhere')).toEqual({ messages: [], nextDueMs: null })
    expect(await claimMessages(given().db, 'late', { limit: 0 })).toEqual({ messages: [], nextDueMs: 0 })
  })

  it('settle by the lease and answer for each, whatever is asked (Q1)', async () => {
    const { db } = given()
    await send('settled', ...['1', '2', '3', '4', '5', '6'].map((text) => message(text)))
    const [acked, retried, failed, returned, extended, stranger] = await claim('settled')
    const stale = { id: stranger!.id, lease: '00000000-0000-4000-8000-000000000000' }
    const nonsense = { id: stranger!.id, lease: 'x' }
    const missing = { id: 999_999_999, lease: stranger!.lease }
    expect(await ackMessages(db, 'settled', [acked!, stale, nonsense, missing])).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(await ackMessages(db, 'settled', [acked!])).toEqual([false])
    expect(await ackMessages(db, 'other', [retried!])).toEqual([false])
    expect(
      await retryMessages(db, 'settled', [
        { ...retried!, delayMs: 60_000, error: 'x\0\ud800' },
        { ...stale, delayMs: 0 },
      ]),
    ).toEqual(['waiting', 'lost'])
    expect(
      await failMessages(db, 'settled', [
        { ...failed!, reason: 'bad' },
        { ...stale, reason: '' },
      ]),
    ).toEqual([true, false])
    expect(await returnMessages(db, 'settled', [returned!, stale])).toEqual([true, false])
    expect(await extendMessages(db, 'settled', [stale, extended!], { leaseMs: 600_000 })).toEqual([
      false,
      true,
    ])
    expect(await ackMessages(db, 'settled', [])).toEqual([])
    await passTime(db, 60_000)
    const again = await claim('settled')
    expect(again.map(({ dataText, attempt, lastError }) => [dataText, attempt, lastError])).toEqual([
      ['2', 2, 'x\u{fffd}\u{fffd}'],
      ['4', 1, null],
      ['6', 2, null],
    ])
    expect(await ackMessages(db, 'settled', [extended!])).toEqual([true])
    const [second, fourth, sixth] = again
    expect(await ackMessages(db, 'settled', [fourth!, sixth!])).toEqual([true, true])
    const twice = await ackMessages(db, 'settled', [second!, second!])
    expect(twice.toSorted(), 'held by one of the two that name it').toEqual([false, true])
  })

  it('wait between attempts by the message own backoff, half fixed and half by lot', async () => {
    const { db } = given()
    const backoff = { baseMs: 60_000, factor: 3, maxMs: 300_000 }
    await send('backoff', message('1', { backoff, maxAttempts: 4 }))
    for (const bound of [60_000, 180_000, 300_000]) {
      const [held] = await claim('backoff')
      expect(await retryMessages(db, 'backoff', [held!])).toEqual(['waiting'])
      const { nextDueMs } = await claimMessages(db, 'backoff')
      expect(nextDueMs).toBeGreaterThan(bound / 2 - 10_000)
      expect(nextDueMs).toBeLessThanOrEqual(bound)
      await passTime(db, bound)
    }
    const [last] = await claim('backoff')
    expect(await retryMessages(db, 'backoff', [last!])).toEqual(['dead'])
    expect(await listDeadLetters(db, 'backoff')).toMatchObject([
      { attempts: 4, reason: 'attempt 4 of 4 failed' },
    ])
  })

  it('keep the dead with the reason, and redrive or purge them (Q2)', async () => {
    const { db } = given()
    const { messages } = await send(
      'dead',
      message('{"a": 1}', { key: 'k', type: 't', headers: { a: 'b' }, priority: 3, maxAttempts: 2 }),
      message('2'),
      message('3'),
    )
    const held = await claim('dead')
    await failMessages(
      db,
      'dead',
      held.map((one) => Object.assign(one, { reason: `no ${one.dataText}` })),
    )
    const letters = await listDeadLetters(db, 'dead')
    expect(letters.map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
    expect(letters[0]).toEqual({
      id: messages[0]!.id,
      type: 't',
      key: 'k',
      dataText: '{"a": 1}',
      headers: { a: 'b' },
      priority: 3,
      attempts: 1,
      maxAttempts: 2,
      sentAt: expect.any(Date),
      diedAt: expect.any(Date),
      reason: 'no {"a": 1}',
    })
    const page = await listDeadLetters(db, 'dead', { after: letters[0]!.id, limit: 1 })
    expect(page.map(({ id }) => id)).toEqual([letters[1]!.id])
    expect(await purgeDeadLetters(db, 'dead', { ids: [letters[1]!.id, 1] })).toBe(1)
    expect(await redriveDeadLetters(db, 'dead', { ids: [letters[0]!.id, letters[1]!.id] })).toEqual([
      letters[0]!.id,
    ])
    expect(await claim('dead')).toMatchObject([
      { id: letters[0]!.id, attempt: 1, maxAttempts: 2, priority: 3, key: 'k', lastError: 'no {"a": 1}' },
    ])
    expect(await redriveDeadLetters(db, 'dead')).toEqual([letters[2]!.id])
    expect(await purgeDeadLetters(db, 'dead')).toBe(0)
    expect(await listDeadLetters(db, 'dead')).toEqual([])
  })

  it('send once while the window of a dedupe key lasts, within one call and after it', async () => {
    const { db } = given()
    const twin = message('1', { dedupeKey: 'd', dedupeWindowMs: 60_000 })
    const first = await send('dedupe', twin, message('2'), twin, message('3', { dedupeKey: 'e' }))
    const [id] = first.messages.map((sent) => sent.id)
    expect(first.messages.map(({ duplicate }) => duplicate)).toEqual([false, false, true, false])
    expect(first.messages[2]!.id).toBe(id)
    await ackMessages(db, 'dedupe', await claim('dedupe'))
    expect((await send('dedupe', twin)).messages).toEqual([{ id, duplicate: true }])
    expect((await send('dedupe-other', twin)).messages[0]!.duplicate).toBe(false)
    await passTime(db, 60_000)
    const [after] = (await send('dedupe', twin)).messages
    expect(after).toEqual({ id: expect.any(Number), duplicate: false })
    expect(after!.id).toBeGreaterThan(id!)
    expect((await claim('dedupe')).map((one) => one.id)).toEqual([after!.id])
  })

  it('give one message to fifty senders of one dedupe key at once', async () => {
    const twin = message('1', { dedupeKey: 'd', key: 'k' })
    const sent = await Promise.all(Array.from({ length: 50 }, () => send('fifty', twin)))
    const all = sent.flatMap(({ messages }) => messages)
    expect(new Set(all.map(({ id }) => id)).size).toBe(1)
    expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(await claim('fifty')).toHaveLength(1)
  })

  it('keep finished messages only where that is set, and sweep them in time', async () => {
    const { db } = given()
    await configureQueue(db, 'kept', { retainFinishedMs: 60_000 })
    await send('kept', message('1', { key: 'k' }), message('2', { key: 'k' }))
    await ackMessages(db, 'kept', await claim('kept'))
    expect(await getQueueStats(db, 'kept')).toMatchObject({ done: 1, ready: 1, retainFinishedMs: 60_000 })
    expect(await sweepQueues(db)).toMatchObject({ removed: 0 })
    await passTime(db, 60_000)
    expect(await sweepQueues(db, { limit: 1000 })).toMatchObject({ removed: 1 })
    await configureQueue(db, 'kept', { retainFinishedMs: null })
    await ackMessages(db, 'kept', await claim('kept'))
    expect(await getQueueStats(db, 'kept')).toMatchObject({ done: 0, ready: 0, leased: 0 })
  })

  it('leave nothing stranded after a sweep, in however many calls (Q2)', async () => {
    const { db } = given()
    await sweepQueues(db, { limit: 100_000 })
    await send(
      'swept',
      ...['1', '2', '3', '4'].map((text) => message(text, { maxAttempts: Number(text) % 2 ? 1 : 2 })),
    )
    await claim('swept')
    await send('swept', message('5', { delayMs: 1000, dedupeKey: 'd', dedupeWindowMs: 1000 }))
    await passTime(db, 60_000)
    const total = { released: 0, died: 0, forgotten: 0 }
    for (let more = true; more;) {
      const swept = await sweepQueues(db, { limit: 2 })
      total.released += swept.released
      total.died += swept.died
      total.forgotten += swept.forgotten
      more = swept.more
    }
    expect(total).toMatchObject({ released: expect.any(Number), died: expect.any(Number) })
    expect(await getQueueStats(db, 'swept')).toMatchObject({ ready: 3, leased: 0, delayed: 0, dead: 2 })
    expect(total.forgotten).toBeGreaterThanOrEqual(1)
    const reasons = (await listDeadLetters(db, 'swept')).map(({ reason }) => reason)
    expect(reasons).toEqual(Array.from({ length: 2 }, () => 'the lease of attempt 1 of 1 ran out'))
  })

  it('are counted and listed', async () => {
    const { db } = given()
    await send(
      'stats:a',
      message('1', { key: 'k' }),
      message('2', { key: 'k' }),
      message('3', { delayMs: 60_000 }),
    )
    await send('stats:a', message('4'), message('5'))
    await claim('stats:a', { limit: 1 })
    await ensureQueue(db, 'stats:b')
    const [a, b] = await listQueues(db, { after: 'stats:', limit: 2 })
    expect(a).toMatchObject({
      name: 'stats:a',
      ready: 2,
      delayed: 1,
      blocked: 1,
      leased: 1,
      dead: 0,
      done: 0,
    })
    expect(a!.oldestReadyAt).toBeInstanceOf(Date)
    expect(b).toMatchObject({ name: 'stats:b', ready: 0, oldestReadyAt: null })
    expect(await getQueueStats(db, 'stats:none')).toBeUndefined()
  })

  it('are fed by the topics they are bound to, and by none without an error', async () => {
    const { db } = given()
    const none = await publishToTopic(db, 'news', [message('0')])
    expect(none).toEqual({ queueIds: [], sent: 0 })
    expect(await bindQueue(db, { topic: 'news', queue: 'reader-a' })).toBe(true)
    expect(await bindQueue(db, { topic: 'news', queue: 'reader-a' })).toBe(false)
    await bindQueue(db, { topic: 'news', queue: 'reader-b' })
    const twin = message('1', { dedupeKey: 'd' })
    const both = await publishToTopic(db, 'news', [twin, message('2')])
    expect(both).toEqual({ queueIds: [expect.any(Number), expect.any(Number)], sent: 4 })
    expect(await publishToTopic(db, 'news', [twin])).toMatchObject({ sent: 0 })
    for (const queue of ['reader-a', 'reader-b'])
      expect((await claim(queue)).map(({ dataText }) => dataText)).toEqual(['1', '2'])
    expect(await listBindings(db, { topic: 'news' })).toEqual([
      { topic: 'news', queue: 'reader-a' },
      { topic: 'news', queue: 'reader-b' },
    ])
    expect(await unbindQueue(db, { topic: 'news', queue: 'reader-a' })).toBe(true)
    expect(await unbindQueue(db, { topic: 'news', queue: 'reader-a' })).toBe(false)
    expect(await publishToTopic(db, 'news', [message('3')])).toMatchObject({ sent: 1 })
    expect(await listBindings(db, { queue: 'reader-a' })).toEqual([])
  })

  it('are worked, keys in their order', async () => {
    const { db } = given()
    const texts = Array.from({ length: 12 }, (_, index) => String(index))
    await send('worked', ...texts.map((text) => message(text, { key: Number(text) % 2 ? 'odd' : null })))
    const seen: string[] = []
    const worker = workQueue(db, 'worked', ({ dataText }) => void seen.push(dataText), {
      ports: createSystemPorts(),
      pollMs: 20,
    })
    await vi.waitFor(() => expect(seen).toHaveLength(12), 25_000)
    await worker.stop()
    const odd = seen.filter((text) => Number(text) % 2)
    expect(odd).toEqual(texts.filter((text) => Number(text) % 2))
    expect(await getQueueStats(db, 'worked')).toMatchObject({ ready: 0, blocked: 0, leased: 0, dead: 0 })
  })

  it.each<[string, Partial<NewMessage>, string]>([
    ['data', { dataText: '{' }, 'INVALID_JSON'],
    ['data', { dataText: '"\ud800"' }, 'INVALID_INPUT'],
    ['type', { type: '' }, 'INVALID_INPUT'],
    ['key', { key: 'x'.repeat(513) }, 'INVALID_INPUT'],
    ['headers.a', { headers: { a: '\0' } }, 'INVALID_INPUT'],
    ['priority', { priority: 40_000 }, 'INVALID_INPUT'],
    ['delayMs', { delayMs: -1 }, 'INVALID_INPUT'],
    ['at', { at: new Date(Number.NaN) }, 'INVALID_INPUT'],
    ['at', { at: new Date(), delayMs: 1 }, 'INVALID_INPUT'],
    ['maxAttempts', { maxAttempts: 0 }, 'INVALID_INPUT'],
    ['leaseMs', { leaseMs: 0.5 }, 'INVALID_INPUT'],
    ['backoff.factor', { backoff: { factor: 0.5 } }, 'INVALID_INPUT'],
    ['dedupeKey', { dedupeKey: 'a\nb' }, 'INVALID_INPUT'],
    ['dedupeWindowMs', { dedupeKey: 'a', dedupeWindowMs: 0 }, 'INVALID_INPUT'],
  ])('refuse a bad %s, and store none of the call', async (field, bad, code) => {
    const sent = send('refused', message('1'), message('1', bad))
    await expect(sent).rejects.toMatchObject({ code, details: { field: `[1].${field}` } })
    expect(await getQueueStats(given().db, 'refused')).toBeUndefined()
  })
})

describeOnEveryDriver(
  'queues in a transaction of the caller',
  (given) => {
    it('send, publish and settle if and only if it commits (Q3)', async () => {
      const { db } = given()
      await bindQueue(db, { topic: 'tx-topic', queue: 'tx-bound' })
      await sendMessages(db, 'tx', [message('"before"')])
      const { messages } = await claimMessages(db, 'tx')
      const everything = (work: () => void) =>
        db.transaction(async ({ drizzle: tx }) => {
          await sendMessages(db, 'tx', [message('"inside"', { dedupeKey: 'd' })], { tx })
          await publishToTopic(db, 'tx-topic', [message('"inside"')], { tx })
          expect(await ackMessages(db, 'tx', messages, { tx })).toEqual([true])
          work()
        })
      const undone = everything(() => {
        throw new Error('undo')
      })
      await expect(undone).rejects.toThrow('undo')
      expect(await getQueueStats(db, 'tx')).toMatchObject({ ready: 0, leased: 1 })
      expect(await getQueueStats(db, 'tx-bound')).toMatchObject({ ready: 0 })
      await everything(() => {})
      expect(await getQueueStats(db, 'tx')).toMatchObject({ ready: 1, leased: 0 })
      expect(await getQueueStats(db, 'tx-bound')).toMatchObject({ ready: 1 })
    })

    it('retry, fail, return, extend and redrive with it, too (Q3)', async () => {
      const { db } = given()
      await sendMessages(
        db,
        'tx-more',
        ['1', '2', '3', '4'].map((text) => message(text)),
      )
      const { messages } = await claimMessages(db, 'tx-more', { limit: 4 })
      const [a, b, c, d] = messages
      await db
        .transaction(async ({ drizzle: tx }) => {
          expect(await retryMessages(db, 'tx-more', [a!], { tx })).toEqual(['waiting'])
          expect(await failMessages(db, 'tx-more', [{ ...b!, reason: 'no' }], { tx })).toEqual([true])
          expect(await returnMessages(db, 'tx-more', [c!], { tx })).toEqual([true])
          expect(await extendMessages(db, 'tx-more', [d!], { tx, leaseMs: 600_000 })).toEqual([true])
          expect(await redriveDeadLetters(db, 'tx-more', { tx })).toEqual([b!.id])
          throw new Error('undo')
        })
        .catch(() => {})
      expect(await getQueueStats(db, 'tx-more')).toMatchObject({ leased: 4, dead: 0 })
      expect((await claimMessages(db, 'tx-more')).nextDueMs).toBeLessThanOrEqual(30_000)
    })
  },
  { needs: ['interactiveTx'] },
)

describeOnEveryDriver(
  'the wakes of queues',
  (given) => {
    it('come with the commit: of a send, a publish, a retry, and a freed key (N1)', async () => {
      const { db } = given()
      const heard: string[] = []
      const listener = await db.connectDirect()
      listener.onNotification((channel, payload) => heard.push(`${channel} ${payload}`))
      await listener.execute('listen "millrace.wake"')
      const { queueId } = await sendMessages(db, 'loud', [
        message('1', { key: 'k' }),
        message('2', { key: 'k' }),
      ])
      const wake = `millrace.wake q${queueId}`
      const hears = (count: number) =>
        vi.waitFor(() => expect(heard.filter((one) => one === wake)).toHaveLength(count))
      await hears(1)
      const first = await claimMessages(db, 'loud')
      await retryMessages(db, 'loud', [{ ...first.messages[0]!, delayMs: 0 }])
      await hears(2)
      await ackMessages(db, 'loud', (await claimMessages(db, 'loud')).messages)
      await hears(3)
      await db
        .transaction(async ({ drizzle: tx }) => {
          await sendMessages(db, 'loud', [message('3')], { tx })
          throw new Error('undo')
        })
        .catch(() => {})
      await db.transaction(({ drizzle: tx }) => sendMessages(db, 'loud', [message('4')], { tx }))
      await hears(4)
      await listener.close()
    })
  },
  { needs: ['listen', 'interactiveTx'] },
)
