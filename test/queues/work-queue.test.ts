import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { claimMessages } from '../../src/queues/claim-messages.ts'
import { listDeadLetters, purgeDeadLetters } from '../../src/queues/dead-letters.ts'
import type { NewMessage } from '../../src/queues/message.ts'
import { sendMessages } from '../../src/queues/send-messages.ts'
import { ackMessages } from '../../src/queues/settle-messages.ts'
import type { WorkOptions } from '../../src/queues/work/options.ts'
import { workQueue, type MessageHandler, type Worker } from '../../src/queues/work/work-queue.ts'
import { createJsonLog } from '../../src/node/log.ts'
import { createSystemPorts } from '../../src/system-ports.ts'
import { awkward } from '../support/awkward-throws.ts'
import { createDrivenClock } from '../support/clock.ts'
import { messageStates, openDb, type OpenDb } from './support.ts'

let open: OpenDb
const workers: Worker[] = []
beforeAll(async () => {
  open = await openDb()
})
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()))
})
afterAll(() => open.close())

const ports = createSystemPorts()

function work(queue: string, handler: MessageHandler, options: Partial<WorkOptions> = {}): Worker {
  const worker = workQueue(open.db, queue, handler, { ports, pollMs: 20, ...options })
  workers.push(worker)
  return worker
}

function send(queue: string, count: number, message: Partial<NewMessage> = {}): Promise<unknown> {
  const messages = Array.from({ length: count }, (_, index) => ({ dataText: String(index), ...message }))
  return sendMessages(open.db, queue, messages)
}

async function untilEmpty(queue: string): Promise<void> {
  await vi.waitFor(async () => expect(await messageStates(open, queue)).toEqual([]), 15_000)
}

/** A promise that a test resolves when it likes. */
function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

describe('workQueue', () => {
  it('hands each message to one handler, so many at a time, and settles them in batches', async () => {
    await send('all', 500)
    const seen: string[] = []
    let running = 0
    let most = 0
    work(
      'all',
      async ({ dataText }) => {
        most = Math.max(most, ++running)
        await new Promise(setImmediate)
        seen.push(dataText)
        running--
      },
      { concurrency: 7 },
    )
    await untilEmpty('all')
    expect(seen.map(Number).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 500 }, (_, index) => index),
    )
    expect(most).toBe(7)
  })

  it('retries what throws, with the reason kept, until it is dead', async () => {
    await send('throws', 1, { maxAttempts: 3, backoff: { baseMs: 0 } })
    const errors: (string | null)[] = []
    work('throws', ({ attempt, lastError }) => {
      errors.push(lastError)
      throw new Error(`no ${attempt}`)
    })
    await untilEmpty('throws')
    expect(errors).toEqual([null, 'no 1', 'no 2'])
    expect(await listDeadLetters(open.db, 'throws')).toMatchObject([{ attempts: 3, reason: 'no 3' }])
  })

  it.each(awkward)('retries until it is dead what throws %s, and goes on', async (_, thrown) => {
    await send('awkward', 1, { maxAttempts: 2, backoff: { baseMs: 0 }, dataText: '"awkward"' })
    await send('awkward', 1, { dataText: '"plain"' })
    const seen: string[] = []
    const log = createJsonLog({ to: { write() {} } })
    const handler: MessageHandler = ({ dataText }) => {
      seen.push(dataText)
      if (dataText === '"awkward"') throw thrown
    }
    work('awkward', handler, { ports: { ...ports, log } })
    await untilEmpty('awkward')
    expect(seen.toSorted()).toEqual(['"awkward"', '"awkward"', '"plain"'])
    const letters = await listDeadLetters(open.db, 'awkward')
    expect(letters).toMatchObject([{ attempts: 2, reason: expect.stringMatching(/./) }])
    await purgeDeadLetters(open.db, 'awkward')
  })

  it('does what a handler returns: retry after a delay, fail, or nothing when it settled by itself', async () => {
    await send('returns', 1)
    const attempts: number[] = []
    work('returns', async (message) => {
      attempts.push(message.attempt)
      if (message.attempt === 1) return { outcome: 'retry', delayMs: 1, error: 'later' }
      // not a delay: counts as thrown, and must not spoil the batch of the others
      if (message.attempt === 2) return { outcome: 'retry', delayMs: -1 }
      return { outcome: 'fail', reason: 'enough' }
    })
    await vi.waitFor(() => expect(attempts).toEqual([1, 2]))
    await open.pool.query(`update millrace.messages m set due_at = now() from millrace.queues q
      where q.id = m.queue_id and q.name = 'returns' and m.state = 'delayed'`)
    await untilEmpty('returns')
    expect(await listDeadLetters(open.db, 'returns')).toMatchObject([{ attempts: 3, reason: 'enough' }])

    await send('settles', 2)
    work('settles', async (message) => {
      await open.db.transaction(({ drizzle: tx }) => ackMessages(open.db, 'settles', [message], { tx }))
      return { outcome: 'settled' }
    })
    await untilEmpty('settles')
    expect(await listDeadLetters(open.db, 'settles')).toEqual([])
  })

  it('acks whatever a handler returns that is no outcome', async () => {
    const returned: unknown[] = [
      undefined,
      null,
      5,
      'done',
      true,
      [],
      {},
      { rows: [] },
      Symbol('s'),
      () => {},
    ]
    await send('acked', returned.length)
    work('acked', (({ dataText }) => returned[Number(dataText)]) as MessageHandler)
    await untilEmpty('acked')
    expect(await listDeadLetters(open.db, 'acked')).toEqual([])
  })

  it.each<[unknown, string]>([
    ['nonsense', '"nonsense"'],
    [undefined, 'undefined'],
    [7, '7'],
  ])('takes the outcome %j, which there is not, for a failure', async (outcome, named) => {
    await send('unknown', 1, { maxAttempts: 1 })
    work('unknown', (() => ({ outcome })) as unknown as MessageHandler)
    await untilEmpty('unknown')
    const reason = `INVALID_INPUT: outcome must be ack, retry, fail or settled, not ${named}`
    expect(await listDeadLetters(open.db, 'unknown')).toMatchObject([{ attempts: 1, reason }])
    await purgeDeadLetters(open.db, 'unknown')
  })

  it.each(awkward)('retries and fails also with %s for a text, or none', async (_, text) => {
    await send('texts', 3)
    const outcomes = [
      { outcome: 'retry', error: text },
      { outcome: 'fail', reason: text },
      { outcome: 'fail' },
    ]
    work('texts', (({ attempt, dataText }) =>
      attempt === 1 ? outcomes[Number(dataText)] : undefined) as MessageHandler)
    const hurry = `update millrace.messages m set due_at = now() from millrace.queues q
      where q.id = m.queue_id and q.name = 'texts' and m.state = 'delayed'`
    await vi.waitFor(async () => {
      await open.pool.query(hurry)
      expect(await messageStates(open, 'texts')).toEqual([])
    }, 15_000)
    const letters = await listDeadLetters(open.db, 'texts')
    expect(letters).toMatchObject([
      { reason: expect.stringMatching(/./) },
      { reason: 'given up without a reason' },
    ])
    await purgeDeadLetters(open.db, 'texts')
  })

  it('takes only the types it asks for', async () => {
    await send('typed', 2, { type: 'a' })
    await send('typed', 2, { type: 'b' })
    await send('typed', 2)
    const seen: (string | null)[] = []
    work('typed', ({ type }) => void seen.push(type), { types: ['b'] })
    await vi.waitFor(async () => expect(await messageStates(open, 'typed')).toHaveLength(4))
    expect(seen).toEqual(['b', 'b'])
  })

  it('goes on with a key whose message was settled, without waiting for a poll', async () => {
    await send('keyed', 20, { key: 'k' })
    const seen: string[] = []
    work('keyed', ({ dataText }) => void seen.push(dataText), { pollMs: 3_600_000 })
    await untilEmpty('keyed')
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => String(index)))
  })

  it('opens a queue that does not exist yet', async () => {
    const seen: string[] = []
    work('unborn', ({ dataText }) => void seen.push(dataText))
    await send('unborn', 1)
    await untilEmpty('unborn')
    expect(seen).toEqual(['0'])
  })

  it.each([
    ['pollMs', 0],
    ['pollMs', -1],
    ['pollMs', Number.NaN],
    ['ackBatchMs', 0],
    ['stopGraceMs', Number.POSITIVE_INFINITY],
    ['leaseMs', 0],
    ['leaseMs', 1.5],
    ['concurrency', 0],
    ['prefetch', -1],
    ['ackBatchSize', 0],
    ['types', ['']],
    ['types', [5]],
    ['types', 'x'],
    ['types', ['fine', 'not \0 fine']],
    ['signal', {}],
  ])('refuses %s = %j at once', (option, value) => {
    expect(() => workQueue(open.db, 'q', () => {}, { ports, [option]: value })).toThrow(
      expect.objectContaining({ code: 'INVALID_INPUT', details: { field: option } }),
    )
  })
})

it.each([undefined, null, 5, {}])('refuses %j for a handler', (handler) => {
  const invalid = expect.objectContaining({ code: 'INVALID_INPUT', details: { field: 'handler' } })
  expect(() => workQueue(open.db, 'q', handler as unknown as MessageHandler, { ports })).toThrow(invalid)
})

describe('stop', () => {
  it('gives back what was not begun, its attempt not counted, and waits for what was', async () => {
    await send('stopped', 10)
    const begun = gate()
    const finish = gate()
    const worker = work(
      'stopped',
      async () => {
        begun.open()
        await finish.opened
      },
      { concurrency: 2, prefetch: 4 },
    )
    await begun.opened
    await vi.waitFor(async () => {
      const states = await messageStates(open, 'stopped')
      expect(states.filter(({ state }) => state === 'leased')).toHaveLength(6)
    })
    const stopping = worker.stop()
    await vi.waitFor(async () => {
      const states = await messageStates(open, 'stopped')
      expect(states.filter(({ state }) => state === 'leased')).toHaveLength(2)
    })
    finish.open()
    await stopping
    const left = await messageStates(open, 'stopped')
    expect(left).toHaveLength(8)
    expect(left.every(({ state, attempts }) => state === 'ready' && attempts === 0)).toBe(true)
  })

  it('aborts handlers when the grace is over, and settles as they say', async () => {
    await send('grace', 1)
    const reasons: unknown[] = []
    const begun = gate()
    const clock = createDrivenClock()
    const worker = work(
      'grace',
      async (_, { signal }) => {
        begun.open()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        reasons.push(signal.reason)
        throw new Error('interrupted')
      },
      { stopGraceMs: 1, ports: { ...ports, clock } },
    )
    await begun.opened
    void worker.stop()
    await clock.advance(0)
    // the database, which gets a second then, may take as long as it likes
    await clock.advance(1)
    await worker.stopped
    expect(reasons).toMatchObject([{ code: 'ABORTED' }])
    expect(await messageStates(open, 'grace')).toMatchObject([{ state: 'delayed', attempts: 1 }])
  })

  it('comes with the signal too, also before the start', async () => {
    const controller = new AbortController()
    const worker = work('signalled', () => {}, { signal: controller.signal })
    controller.abort()
    await worker.stopped
    await work('signalled', () => {}, { signal: controller.signal }).stopped
    await send('signalled', 1)
    expect((await claimMessages(open.db, 'signalled')).messages).toHaveLength(1)
  })
})
