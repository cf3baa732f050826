import { handlerFor } from '@node-ts/bus-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { MillraceTransport, MillraceTransportOptions } from '../../src/node-ts-bus/transport.ts'
import { awkward } from '../support/awkward-throws.ts'
import { passTime } from '../queues/support.ts'
import {
  countMessages,
  createTransport,
  gate,
  keepLog,
  Numbered,
  openBus,
  openServer,
  read,
  type KeptLog,
  type OpenedServer,
} from './support.ts'

const patience = { timeout: 20_000 }
const lostWarning = 'The lease of a message was lost: nothing was settled.'
/** No poll comes to the help of what should come by itself. */
const noPolls = { pollMinMs: 3_600_000, pollMaxMs: 3_600_000 }

let server: OpenedServer
beforeAll(async () => {
  server = await openServer()
})
afterAll(() => server.close())

type Options = Partial<Omit<MillraceTransportOptions, 'db' | 'millrace'>>

/** A transport that is started, without a bus that reads. */
async function started(queue: string, options: Options = {}, log?: KeptLog): Promise<MillraceTransport> {
  const transport = createTransport(server.db, queue, options)
  await openBus({
    transport,
    start: false,
    log,
    configure: (bus) => bus.withRetryStrategy({ calculateRetryDelay: () => 0 }),
  })
  await transport.start()
  return transport
}

/** A message whose lease ran out, and the one that another process has of it since. */
async function overtaken(queue: string, log: KeptLog) {
  const slow = await started(queue, {}, log)
  const fast = await started(queue)
  await slow.sendToAddress(queue, new Numbered(1))
  const stale = await read(slow)
  await passTime(server, queue, 3_600_000)
  const fresh = await read(fast)
  expect(fresh.id).toBe(stale.id)
  expect(fresh.raw.lease).not.toBe(stale.raw.lease)
  return { slow, fast, stale, fresh }
}

describe('a message that another has taken since (Q1)', () => {
  it.each(['deleteMessage', 'returnMessage', 'fail'] as const)(
    'is not touched by %s, which warns',
    async (settle) => {
      const queue = `overtaken-${settle}`
      const log = keepLog()
      const { slow, fast, stale, fresh } = await overtaken(queue, log)
      await slow[settle](stale)
      expect(log.warnings).toContain(lostWarning)
      expect(await slow.deadLetters()).toEqual([])
      expect(await countMessages(server.pool, queue)).toBe(1)
      await fast.deleteMessage(fresh)
      expect(await countMessages(server.pool, queue)).toBe(0)
    },
  )

  it('says how often it came before', async () => {
    const queue = 'counted'
    const transport = await started(queue)
    await transport.sendToAddress(queue, new Numbered(1))
    const first = await read(transport)
    expect(first.raw.failedAttempts).toBe(0)
    await transport.returnMessage(first)
    const second = await read(transport)
    expect(second.raw.failedAttempts).toBe(1)
    await passTime(server, queue, 3_600_000)
    const third = await read(await started(queue))
    expect(third.raw.failedAttempts).toBe(2)
  })
})

describe('a message that was settled', () => {
  it.each(['fail', 'returnMessage', 'deleteMessage'] as const)(
    'by %s is left alone by what comes after, in silence',
    async (settle) => {
      const log = keepLog()
      const queue = `twice-${settle}`
      const transport = await started(queue, {}, log)
      await transport.sendToAddress(queue, new Numbered(1))
      const message = await read(transport)
      await transport[settle](message)
      const left = await countMessages(server.pool, queue)
      const dead = await transport.deadLetters()
      await transport.deleteMessage(message)
      await transport.returnMessage(message)
      await transport.fail(message)
      expect(await countMessages(server.pool, queue)).toBe(left)
      expect(await transport.deadLetters()).toEqual(dead)
      expect(log.warnings).toEqual([])
    },
  )

  it('was failed by two handlers at once without a warning', async () => {
    const log = keepLog()
    const transport = await started('both', {}, log)
    await transport.sendToAddress('both', new Numbered(1))
    const message = await read(transport)
    await Promise.all([transport.fail(message), transport.fail(message), transport.deleteMessage(message)])
    expect(await transport.deadLetters()).toHaveLength(1)
    expect(log.warnings).toEqual([])
  })
})

describe('a message that is to come again', () => {
  it('comes when its delay is over, by a timer of this process alone', async () => {
    const transport = createTransport(server.db, 'timer', { listen: false, ...noPolls })
    const times: number[] = []
    // two loops, so that one waits already when the other gives the message back
    await openBus({
      transport,
      start: false,
      configure: (bus) =>
        bus
          .withConcurrency(2)
          .withRetryStrategy({ calculateRetryDelay: (attempt) => 400.4 + attempt })
          .withHandler(
            handlerFor(Numbered, () => {
              times.push(Date.now())
              if (times.length < 3) throw new Error('not yet')
            }),
          ),
    }).then(async (bus) => {
      await bus.send(new Numbered(1))
      await bus.start()
    })
    await vi.waitFor(() => expect(times).toHaveLength(3), patience)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(390)
  })

  it('comes when the lease of a process that died is over, by a timer alone', async () => {
    const queue = 'left-behind'
    const dead = await started(queue, { leaseMs: 1500, maxHandlingMs: 1 })
    await dead.sendToAddress(queue, new Numbered(1))
    await read(dead)
    const alive = await started(queue, { listen: false, ...noPolls })
    expect((await read(alive)).raw.failedAttempts).toBe(1)
  })

  it('is tried as often as the receiver says, where the sender says more', async () => {
    const sender = await started('impatient', { maxAttempts: 5 })
    await sender.stop()
    await sender.sendToAddress('impatient', new Numbered(1))
    const receiver = await started('impatient', { maxAttempts: 2 })
    await receiver.returnMessage(await read(receiver))
    await receiver.returnMessage(await read(receiver))
    expect(await receiver.deadLetters()).toMatchObject([
      { attempts: 2, maxAttempts: 5, reason: 'attempt 2 of 2 failed' },
    ])
  })

  it.each<[string, () => number]>([
    ['throws', () => never()],
    ['answers no number', () => Number.NaN],
  ])('comes also where the strategy %s', async (name, calculateRetryDelay) => {
    const queue = `strategy-${name.replaceAll(' ', '-')}`
    const log = keepLog()
    const transport = createTransport(server.db, queue)
    await openBus({
      transport,
      start: false,
      log,
      configure: (bus) => bus.withRetryStrategy({ calculateRetryDelay }),
    })
    await transport.start()
    await transport.sendToAddress(queue, new Numbered(1))
    await transport.returnMessage(await read(transport))
    expect(log.warnings).toHaveLength(1)
    expect((await read(transport)).raw.failedAttempts).toBe(1)
  })

  it('comes too where a listener of the bus threw, and the bus forgot it', async () => {
    const seen: number[] = []
    const transport = createTransport(server.db, 'forgotten', { leaseMs: 300, maxHandlingMs: 300 })
    const bus = await openBus({
      transport,
      configure: (bus) => bus.withHandler(handlerFor(Numbered, ({ number }) => void seen.push(number))),
    })
    bus.afterReceive.once(() => never())
    await bus.send(new Numbered(1))
    await vi.waitFor(() => expect(seen).toEqual([1]), patience)
  })
})

describe('a message whose handler throws what nobody can describe', () => {
  const middlewares = ['recordErrors', 'transactional'] as const
  const cases = awkward.flatMap(([name, thrown]) => middlewares.map((how) => [name, how, thrown] as const))

  it.each(cases)('%s, is retried and dies with %s too', async (_, how, thrown) => {
    const queue = `awkward-${cases.findIndex(([, other, value]) => other === how && value === thrown)}`
    const transport = createTransport(server.db, queue, { maxAttempts: 2 })
    await openBus({
      transport,
      configure: (bus) =>
        bus
          .withMessageReadMiddleware(transport[how]())
          .withRetryStrategy({ calculateRetryDelay: () => 0 })
          .withHandler(
            handlerFor(Numbered, () => {
              throw thrown
            }),
          ),
    })
    await transport.sendToAddress(queue, new Numbered(1))
    await vi.waitFor(async () => expect(await transport.deadLetters()).toHaveLength(1), patience)
    const reason: unknown = expect.stringMatching(/./)
    expect(await transport.deadLetters()).toMatchObject([{ attempts: 2, reason, failure: { reason } }])
  })
})

function never(): never {
  throw new Error('on purpose')
}

describe('a long handler', () => {
  it('keeps its message for as long as it runs', async () => {
    const queue = 'long'
    const { opened, open } = gate()
    const seen: number[] = []
    const log = keepLog()
    const transport = createTransport(server.db, queue, { leaseMs: 2000 })
    const bus = await openBus({
      transport,
      log,
      configure: (bus) =>
        bus.withHandler(
          handlerFor(Numbered, async ({ number }) => {
            seen.push(number)
            await opened
          }),
        ),
    })
    await bus.send(new Numbered(1))
    await vi.waitFor(() => expect(seen).toEqual([1]), patience)
    const other = await started(queue)
    const second = other.readNextMessage()
    await vi.waitFor(async () => {
      const { rows } = await server.pool.query(
        `select m.due_at > m.sent_at + interval '6 s' as prolonged from millrace.messages m
          join millrace.queues q on q.id = m.queue_id where q.name = $1`,
        [queue],
      )
      expect(rows).toEqual([{ prolonged: true }])
    }, patience)
    open()
    await vi.waitFor(async () => expect(await countMessages(server.pool, queue)).toBe(0), patience)
    await other.stop()
    expect(await second).toBeUndefined()
    expect(seen).toEqual([1])
    expect(log.warnings).toEqual([])
  }, 60_000)
})

describe('what a message is sent with', () => {
  it('can be a key, by which messages are worked one after the other', async () => {
    const queue = 'keyed'
    const transport = await started(queue, {
      listen: false,
      ...noPolls,
      messageOptions: () => ({ key: 'same' }),
    })
    for (const number of [1, 2]) await transport.sendToAddress(queue, new Numbered(number))
    const first = await read(transport)
    const second = transport.readNextMessage()
    expect(await countMessages(server.pool, queue)).toBe(2)
    await transport.deleteMessage(first)
    expect([first, await second].map((message) => message?.domainMessage)).toEqual([
      { ...new Numbered(1) },
      { ...new Numbered(2) },
    ])
  })
})
