import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import type { ClaimedMessage } from '../../src/queues/message.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import type { WorkOptions } from '../../src/queues/work/options.ts'
import { workQueue, type MessageHandler, type Worker } from '../../src/queues/work/work-queue.ts'
import { createSystemPorts, silentLog } from '../../src/system-ports.ts'
import { createWakeRegistry, type WakeRegistry } from '../../src/wakes/wake-signals.ts'
import { createDrivenClock, type DrivenClock } from '../support/clock.ts'
import { spyOn, type SpiedDb } from './spied-db.ts'
import { messageStates, openDb, passTime, type OpenDb } from './support.ts'

let open: OpenDb
let spied: SpiedDb
let clock: DrivenClock
let wakes: WakeRegistry
const workers: Worker[] = []
beforeAll(async () => {
  open = await openDb()
})
beforeEach(() => {
  spied = spyOn(open.db)
  clock = createDrivenClock()
  wakes = createWakeRegistry(clock)
})
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()))
})
afterAll(() => open.close())

function work(queue: string, handler: MessageHandler, options: Partial<WorkOptions> = {}): Worker {
  const ports = { ...createSystemPorts(), clock, random: () => 0 }
  const worker = workQueue(spied.db, queue, handler, { ports, ackBatchSize: 1, ...options })
  workers.push(worker)
  return worker
}

const byWakes = { wakes: (subject: `q${number}`) => wakes.subscribe([subject]) }
const claims = (): number => spied.calls('claim_messages')

async function send(queue: string, message = {}): Promise<number> {
  return (await sendMessages(open.db, queue, [{ dataText: '1', ...message }])).queueId
}

/** A handler that does not end, and tells what it was given. */
function hanging(): {
  handler: MessageHandler
  begun: Promise<{ message: ClaimedMessage; signal: AbortSignal }>
} {
  let begin: (given: { message: ClaimedMessage; signal: AbortSignal }) => void
  const begun = new Promise<{ message: ClaimedMessage; signal: AbortSignal }>((resolve) => (begin = resolve))
  return {
    begun,
    handler: async (message, { signal }) => {
      begin({ message, signal })
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  }
}

/** Works a queue, whose message is handled by the time this resolves, and settled 100 s after that. */
async function handledAndWaiting(queue: string): Promise<{ seen: string[]; warned: string[] }> {
  const seen: string[] = []
  const warned: string[] = []
  const log = { ...silentLog, warn: (_facts: object, message: string) => void warned.push(message) }
  const ports = { ...createSystemPorts(log), clock, random: () => 0 }
  const batches = { ackBatchSize: 100, ackBatchMs: 100_000 }
  work(queue, ({ dataText }) => void seen.push(dataText), { ...byWakes, pollMs: null, ports, ...batches })
  await vi.waitFor(() => expect(seen).toHaveLength(1), 10_000)
  return { seen, warned }
}

describe('an idle worker', () => {
  it('makes one query a poll, whatever its concurrency', async () => {
    work('idle', () => {}, { concurrency: 50, pollMs: 1000 })
    await spied.waitForCalls('claim_messages', 1)
    for (const polls of [2, 3, 4]) {
      await clock.waitForTimers(1)
      expect(clock.nextIn()).toBe(1000)
      await clock.advance(999)
      expect(claims()).toBe(polls - 1)
      await clock.advance(1)
      await spied.waitForCalls('claim_messages', polls)
    }
    expect(claims()).toBe(4)
  })

  it('makes none while wakes come and nothing is due', async () => {
    work('asleep', () => {}, { ...byWakes, pollMs: null })
    await spied.waitForCalls('claim_messages', 1)
    await clock.advance(86_400_000)
    expect(clock.pending()).toBe(0)
    expect(claims()).toBe(1)
  })

  it('looks again at a wake, and keeps one that comes while it is looking', async () => {
    const id = await send('woken', { delayMs: 3_600_000 })
    let handled = 0
    work('woken', () => void handled++, { ...byWakes, pollMs: null })
    await spied.waitForCalls('claim_messages', 1)
    await clock.waitForTimers(1)
    // the claim that this wake causes is on its way when the message and its own wake come
    wakes.raise(`q${id}`)
    await send('woken')
    wakes.raise(`q${id}`)
    await vi.waitFor(() => expect(handled).toBe(1))
    // two wakes, and one claim after what was found
    await vi.waitFor(() => expect(claims()).toBeGreaterThanOrEqual(3))
    expect(claims()).toBeLessThanOrEqual(4)
  })

  it('looks at the time when the next message is due, though no poll is near', async () => {
    await send('due', { delayMs: 30_000 })
    let handled = 0
    work('due', () => void handled++, { ...byWakes, pollMs: 60_000 })
    await spied.waitForCalls('claim_messages', 1)
    await clock.waitForTimers(1)
    expect(clock.nextIn()).toBeGreaterThan(25_000)
    expect(clock.nextIn()).toBeLessThanOrEqual(30_000)
    await passTime(open, 'due', 30_000)
    await clock.advance(30_000)
    await vi.waitFor(() => expect(handled).toBe(1))
  })

  it('does not spin on what is due and held by an open transaction', async () => {
    await send('held', { leaseMs: 1000 })
    const { messages } = await claimMessages(open.db, 'held')
    await passTime(open, 'held', 1000)
    const client = await open.pool.connect()
    await client.query('begin')
    await client.query('select 1 from millrace.messages where id = $1 for update', [messages[0]!.id])
    work('held', () => {}, { ...byWakes, pollMs: null })
    await spied.waitForCalls('claim_messages', 1)
    await clock.waitForTimers(1)
    expect(clock.nextIn()).toBe(1000)
    await client.query('commit')
    client.release()
  })
})

describe('a lease', () => {
  it('is prolonged when half of it has passed, again and again', async () => {
    await send('long', { leaseMs: 60_000 })
    const { handler, begun } = hanging()
    const worker = work('long', handler, { ...byWakes, pollMs: null, stopGraceMs: 1 })
    const { message, signal } = await begun
    for (const beats of [1, 2, 3]) {
      await passTime(open, 'long', 30_000)
      await clock.advance(30_000)
      await spied.waitForCalls('extend_messages', beats)
      const { nextDueMs } = await claimMessages(open.db, 'long')
      expect(nextDueMs).toBeGreaterThan(50_000)
    }
    expect(signal.aborted).toBe(false)
    expect(message.attempt).toBe(1)
    void worker.stop()
    await clock.waitForTimers(1)
    await vi.waitFor(() => clock.advance(10).then(() => expect(signal.aborted).toBe(true)))
    await worker.stopped
    expect(await messageStates(open, 'long')).toEqual([])
  })

  it('that is lost aborts the handler, and what it returns changes nothing (Q1)', async () => {
    await send('lost', { leaseMs: 60_000 })
    const { handler, begun } = hanging()
    work('lost', handler, { ...byWakes, pollMs: null, concurrency: 1, prefetch: 0 })
    const { signal } = await begun
    await passTime(open, 'lost', 60_000)
    const { messages } = await claimMessages(open.db, 'lost')
    expect(messages).toHaveLength(1)
    await clock.advance(30_000)
    await vi.waitFor(() => expect(signal.aborted).toBe(true))
    expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    await spied.waitForCalls('ack_messages', 1)
    expect(await messageStates(open, 'lost')).toMatchObject([{ state: 'leased', attempts: 2 }])
  })

  it('is prolonged until its settling is answered, however long that waits for others', async () => {
    await send('waits', { leaseMs: 60_000 })
    const { seen, warned } = await handledAndWaiting('waits')
    for (const beats of [1, 2, 3]) {
      await passTime(open, 'waits', 30_000)
      await clock.advance(30_000)
      await spied.waitForCalls('extend_messages', beats)
      expect((await claimMessages(open.db, 'waits')).messages).toEqual([])
    }
    await clock.advance(10_000)
    await spied.waitForCalls('ack_messages', 1)
    expect(await messageStates(open, 'waits')).toEqual([])
    expect(seen).toHaveLength(1)
    expect(warned).toEqual([])
  })

  it('that is lost while its settling waits is told of once', async () => {
    await send('late', { leaseMs: 60_000 })
    const { warned } = await handledAndWaiting('late')
    await passTime(open, 'late', 60_000)
    expect((await claimMessages(open.db, 'late')).messages).toHaveLength(1)
    await clock.advance(30_000)
    await spied.waitForCalls('extend_messages', 1)
    await clock.advance(70_000)
    await spied.waitForCalls('ack_messages', 1)
    await vi.waitFor(
      () => expect(warned).toEqual(['A message was settled after its lease was lost.']),
      10_000,
    )
    expect(await messageStates(open, 'late')).toMatchObject([{ state: 'leased', attempts: 2 }])
  })

  it('counts as lost when its time is over and the database cannot be asked', async () => {
    await send('cut', { leaseMs: 60_000 })
    const { handler, begun } = hanging()
    work('cut', handler, { ...byWakes, pollMs: null })
    const { signal } = await begun
    spied.lose('extend_messages', 100)
    await clock.advance(30_000)
    await spied.waitForCalls('extend_messages', 1)
    expect(signal.aborted).toBe(false)
    for (let second = 0; second < 31 && !signal.aborted; second++) await clock.advance(1000)
    expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(spied.calls('extend_messages')).toBeGreaterThan(10)
  })
})

/** Keeps every statement on a table waiting, as a database that gives no answer, until the function is called. */
async function silence(table: string): Promise<() => Promise<void>> {
  const client = await open.pool.connect()
  await client.query('begin')
  await client.query(`lock table millrace.${table} in access exclusive mode`)
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

describe('a worker that stops while the database gives no answer', () => {
  it('leaves what it could not settle to its lease when the grace is over, and says so once', async () => {
    await send('silent', { leaseMs: 60_000 })
    const warned: string[] = []
    const log = { ...silentLog, warn: (_facts: object, message: string) => void warned.push(message) }
    const ports = { ...createSystemPorts(log), clock, random: () => 0 }
    let finish = (): void => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const begun = new Promise<void>((begin) => {
      const handler = (): Promise<void> => (begin(), finished)
      work('silent', handler, { ...byWakes, pollMs: null, ports, stopGraceMs: 5000 })
    })
    await begun
    const speak = await silence('messages')
    finish()
    let over = false
    void workers[0]!.stop().then(() => (over = true))
    await clock.advance(0)
    await clock.advance(4999)
    expect(over).toBe(false)
    await clock.advance(1)
    expect(over).toBe(true)
    expect(warned).toEqual([
      'The database did not answer before the worker stopped: what was in hand is left to its lease.',
    ])
    await speak()
    await spied.waitForCalls('ack_messages', 1)
  })

  it('does not wait for its queue to be opened', async () => {
    const speak = await silence('queues')
    try {
      await work('unopened', () => {}).stop()
      expect(spied.calls('ensure_queue')).toBe(0)
    } finally {
      await speak()
    }
    await spied.waitForCalls('ensure_queue', 1)
  })
})

describe('a broken connection', () => {
  it('is tried again with growing pauses, for claims and for settles', async () => {
    await send('broken')
    spied.lose('ensure_queue', 1)
    spied.lose('claim_messages', 3)
    spied.lose('ack_messages', 2)
    let handled = 0
    work('broken', () => void handled++, { ...byWakes, pollMs: null })
    const pauses: (number | undefined)[] = []
    for (const [name, count] of [
      ['ensure_queue', 1],
      ['claim_messages', 1],
      ['claim_messages', 2],
      ['claim_messages', 3],
      ['ack_messages', 1],
      ['ack_messages', 2],
    ] as const) {
      await spied.waitForCalls(name, count)
      await clock.waitForTimers(1)
      pauses.push(clock.nextIn())
      await clock.advance(clock.nextIn()!)
    }
    await spied.waitForCalls('ack_messages', 3)
    expect(pauses).toEqual([50, 50, 100, 200, 50, 100])
    expect(handled).toBe(1)
    expect(await messageStates(open, 'broken')).toEqual([])
  })
})
